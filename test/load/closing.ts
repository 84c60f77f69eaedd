/** Runs a program of this folder that closes under load, and says what is expected of it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import type { RedisOptions } from '../../src/redis/client/open/open-redis.js'

const program = join(dirname(fileURLToPath(import.meta.url)), 'close.mjs')

export interface Report {
  readonly asked: number
  readonly answered: number
  readonly degradedEvents: number
  /** How many by code. */
  readonly errors: Readonly<Record<string, number>>
  /** Closing ended by its own timers, or Redis was there to answer. */
  readonly isCloseBounded: boolean
}

/** Runs the program; resolves with its report if it exits by itself with status 0 and writes nothing to stderr. */
export async function runClosing(
  store: RedisOptions,
  { hangs = [] as readonly number[], timeoutMs = 100, stderr: expected = /^$/ } = {},
): Promise<Report> {
  const child = spawn(process.execPath, [program, JSON.stringify({ store, timeoutMs, hangs })], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (text) => {
    stdout += text
  })
  child.stderr.on('data', (text) => {
    stderr += text
  })
  const [status] = await once(child, 'close')
  expect(stderr).toMatch(expected)
  expect(status).toBe(0)
  return JSON.parse(stdout)
}

/** Every decision was answered or rejected because the gate was closed, and close did not wait for a hung Redis. */
export function expectClosed({ asked, answered, errors, isCloseBounded }: Report): void {
  const { FLUXGATE_CLOSED: closed = 0, ...others } = errors
  expect(others).toEqual({})
  expect(asked).toBe(answered + closed)
  // One rejection for each of the 50 callers and the five waiting calls.
  expect(closed).toBe(55)
  expect(isCloseBounded).toBe(true)
}
