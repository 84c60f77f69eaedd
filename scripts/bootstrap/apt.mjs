// @ts-check
/** Steps that install a program for tests with apt, on Debian-based systems. */
import { Failure, isOnPath, run } from './step.mjs'

const again = 'then run the same command again.'

/**
 * @param {object} options
 * @param {string} options.program the command, which is also the name of the package
 * @param {string} options.missing why it is needed
 * @param {string} options.elsewhere how to install it without apt
 * @param {string} [options.after] shell commands to run after the installation
 * @returns {import('./step.mjs').Step}
 */
export function aptStep({ program, missing, elsewhere, after = '' }) {
  const byHand = `Install it with "sudo apt-get install ${program}", ${again}`
  return {
    doing: `installing ${program}`,
    needed: () => !isOnPath(program),
    async run() {
      if (!isOnPath('apt-get')) throw new Failure(`${missing} ${elsewhere}, ${again}`)
      const sudo = process.getuid?.() === 0 ? [] : ['sudo', '-n']
      if (sudo.length > 0 && (await run([...sudo, 'true'])).status !== 0) {
        throw new Failure(`${missing} Installing it requires root, and sudo requires a password. ${byHand}`)
      }
      const { status, output } = await run([...sudo, 'sh', '-c', installation(program, after)])
      if (status !== 0) throw new Failure(`${gist(output)}\n\n${missing} It could not be installed. ${byHand}`)
      if (!isOnPath(program)) throw new Failure(`${missing} The package ${program} was installed elsewhere. ${byHand}`)
    },
  }
}

/**
 * Installs only the program. Debian packages also start their service, which is prevented here. An existing policy-rc.d is
 * kept.
 */
const installation = (/** @type {string} */ program, /** @type {string} */ after) => `
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
apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=120 ${program}
${after}
`

/** Extracts the errors and warnings of apt: lines that start with `E:` or `W:`. */
function gist(/** @type {string} */ output) {
  const lines = output.split('\n')
  const relevant = lines.filter((line) => /^[EW]: /.test(line))
  return (relevant.length > 0 ? relevant : lines).slice(-10).join('\n')
}
