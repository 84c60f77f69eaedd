/** Runs a program of this folder that closes under load, and says what is expected of it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import type { RedisOptions } from '../../src/app/open-redis.js'

const program = join(dirname(fileURLToPath(import.meta.url)), 'close.mjs')

export interface Report {
  readonly asked: number
  readonly answered: number
  readonly degradedEvents: number
  /** How many by code. */
  readonly errors: Readonly<Record<string, number>>
  readonly closeMs: number
}

/** What the program tells, if it comes to its end by itself and has nothing to complain about. */
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

/** Every decision was answered, or says that it came too late; and nobody had to wait long for the end. */
export function expectClosed({ asked, answered, errors, closeMs }: Report): void {
  const { FLUXGATE_CLOSED: closed = 0, ...others } = errors
  expect(others).toEqual({})
  expect(asked).toBe(answered + closed)
  // Each of 50 callers was told once, and five had waited.
  expect(closed).toBe(55)
  expect(closeMs).toBeLessThan(5_000)
}
