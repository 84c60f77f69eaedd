// @ts-check
/** Helpers of the steps: paths, digests, running commands, failures. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * @typedef {object} Step
 * @property {string} doing printed while the step runs
 * @property {() => boolean} needed called on every start, so it must be cheap
 * @property {() => Promise<void>} run throws a Failure if the user has to act
 */

/** A failure that is reported to the user without a stack trace. All other errors are bugs. */
export class Failure extends Error {}

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

/** Returns a path in the repository. */
export const at = (/** @type {string[]} */ ...parts) => join(root, ...parts)

export const hash = (/** @type {string | Buffer} */ data) => createHash('sha256').update(data).digest('hex')

/** Changes with the required packages and versions. */
export const lockHash = () => hash(readFileSync(at('package-lock.json')))

export const readText = (/** @type {string} */ file) => (existsSync(file) ? readFileSync(file, 'utf8') : undefined)

export const readJson = (/** @type {string} */ file) => JSON.parse(readFileSync(file, 'utf8'))

/**
 * Returns the path of a program on the PATH, or undefined.
 *
 * @param {string} program
 */
export function findOnPath(program) {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '')
  return folders.map((folder) => join(folder, program)).find(isExecutable)
}

export const isOnPath = (/** @type {string} */ program) => findOnPath(program) !== undefined

export function isExecutable(/** @type {string} */ file) {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/**
 * Runs a command in the repository and collects its output. The command is stopped when this process exits.
 *
 * @param {string[]} command
 * @returns {Promise<{ status: number, output: string }>}
 */
export function run([file = '', ...args]) {
  return new Promise((resolve) => {
    const child = spawn(file, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
    const stop = () => child.kill()
    process.once('exit', stop)
    let output = ''
    const append = (/** @type {string} */ text) => {
      output += text
    }
    child.stdout.setEncoding('utf8').on('data', append)
    child.stderr.setEncoding('utf8').on('data', append)
    child.once('error', (error) => append(error.message))
    child.once('close', (status) => {
      process.off('exit', stop)
      resolve({ status: status ?? 1, output: output.trim() })
    })
  })
}
