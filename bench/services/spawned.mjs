// @ts-check
/** A program of another project, started in a temporary directory and ready when its port accepts connections. */
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Broken } from '../measure.mjs'
import { stopOnExit } from '../stop-on-exit.mjs'
import { libraryPath } from './install.mjs'

const longestStartMs = 20_000

/**
 * @param {string} file
 * @param {object} options
 * @param {number} options.port that it listens on
 * @param {(directory: string) => readonly string[]} [options.args]
 * @param {(directory: string) => Readonly<Record<string, string>>} [options.env]
 * @param {(directory: string) => Readonly<Record<string, string>>} [options.files] content by path in the directory
 */
export async function spawned(file, { port, args = () => [], env = () => ({}), files = () => ({}) }) {
  const directory = mkdtempSync(join(tmpdir(), 'fluxgate-bench-'))
  for (const [name, text] of Object.entries(files(directory))) {
    mkdirSync(dirname(join(directory, name)), { recursive: true })
    writeFileSync(join(directory, name), text)
  }
  const child = spawn(file, args(directory), {
    cwd: directory,
    env: { ...process.env, LD_LIBRARY_PATH: libraryPath, ...env(directory) },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      output = (output + text).slice(-2_000)
    })
  let failure = ''
  child.once('error', (error) => {
    failure = error.message
  })
  const stop = stopOnExit(() => {
    child.kill('SIGKILL')
    rmSync(directory, { recursive: true, force: true })
  })
  for (const startedAt = performance.now(); performance.now() - startedAt < longestStartMs; await sleep(50)) {
    if (failure !== '' || child.exitCode !== null) break
    if (await accepts(port)) return { pid: /** @type {number} */ (child.pid), stop }
  }
  stop()
  throw new Broken(`${file} did not start: ${failure} ${output}`)
}

/** @returns {Promise<boolean>} */
const accepts = (/** @type {number} */ port) =>
  new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' })
    const end = (/** @type {boolean} */ isOpen) => {
      socket.destroy()
      resolve(isOpen)
    }
    socket.once('connect', () => end(true)).once('error', () => end(false))
  })

/** @returns {Promise<number>} */
export const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
      server.close(() => resolve(port))
    })
  })
