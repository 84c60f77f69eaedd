// @ts-check
/** What the steps share: where things are, how a command is run, and how a failure is told. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * @typedef {object} Step
 * @property {string} doing what is said while it works
 * @property {() => boolean} needed asked on every start, so it is cheap
 * @property {() => Promise<void>} run throws a Failure if a person has to do something about it
 */

/** A failure that is explained to the person at the terminal; anything else is a bug and keeps its stack. */
export class Failure extends Error {}

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

/** A path in the repository. */
export const at = (/** @type {string[]} */ ...parts) => join(root, ...parts)

export const hash = (/** @type {string | Buffer} */ data) => createHash('sha256').update(data).digest('hex')

/** Changes whenever other packages, or other versions of them, are asked for. */
export const lockHash = () => hash(readFileSync(at('package-lock.json')))

export const readText = (/** @type {string} */ file) => (existsSync(file) ? readFileSync(file, 'utf8') : undefined)

export const readJson = (/** @type {string} */ file) => JSON.parse(readFileSync(file, 'utf8'))

/**
 * Where a program is that the PATH leads to; undefined if it leads to none.
 *
 * @param {string} program
 */
export function findOnPath(program) {
  const places = (process.env.PATH ?? '').split(delimiter).filter((place) => place !== '')
  return places.map((place) => join(place, program)).find(isExecutable)
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
 * Runs a command in the repository without showing its output; it ends when this process does.
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
