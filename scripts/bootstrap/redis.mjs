// @ts-check
/** Step: redis-server is on the PATH, for tests and benchmarks. On Debian-based systems it is installed. */
import { Failure, isOnPath, run } from './step.mjs'

/** @type {import('./step.mjs').Step} */
export const redis = { doing: 'installing redis-server', needed: () => !isOnPath('redis-server'), run: install }

const missing = 'Tests and benchmarks start real Redis servers, but redis-server is not on the PATH.'
const again = 'then run the same command again.'
const byHand = `Install it with "sudo apt-get install redis-server", ${again}`

/**
 * Installs only the program. Debian packages also start and enable their service, which is prevented and undone here. An
 * existing policy-rc.d is kept.
 */
const installation = `
set -e
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  trap 'exit 143' HUP INT TERM
  printf '#!/bin/sh\\nexit 101\\n' > "$policy"
  chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
apt-get update -q
apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=120 redis-server
if [ -d /run/systemd/system ]; then systemctl disable --now redis-server; fi
`

async function install() {
  if (!isOnPath('apt-get')) {
    throw new Failure(`${missing} Install Redis 7 (on a Mac: "brew install redis"), ${again}`)
  }
  const sudo = process.getuid?.() === 0 ? [] : ['sudo', '-n']
  if (sudo.length > 0 && (await run([...sudo, 'true'])).status !== 0) {
    throw new Failure(`${missing} Installing it requires root, and sudo requires a password. ${byHand}`)
  }
  const { status, output } = await run([...sudo, 'sh', '-c', installation])
  if (status !== 0) throw new Failure(`${gist(output)}\n\n${missing} It could not be installed. ${byHand}`)
  if (!isOnPath('redis-server'))
    throw new Failure(`${missing} The package redis-server was installed elsewhere. ${byHand}`)
}

/** Extracts the errors and warnings of apt: lines that start with `E:` or `W:`. */
function gist(/** @type {string} */ output) {
  const lines = output.split('\n')
  const relevant = lines.filter((line) => /^[EW]: /.test(line))
  return (relevant.length > 0 ? relevant : lines).slice(-10).join('\n')
}
