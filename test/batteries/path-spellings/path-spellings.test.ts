/** No spelling of a path reaches a limited resource without being counted. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { randomSeed } from '../../fixtures/random-seed.js'
import { gatewayWith } from '../../fixtures/test-gateway.js'
import { drawFrom } from '../draw.js'
import { converse } from '../http/conversation.js'
import { parseResponse, valuesOf } from '../http/http-parser.js'
import { spellingApps } from './apps.js'
import { fixedSpellings, protectedPath, randomSpelling } from './spellings.js'

const seed = randomSeed()
const randomCount = Number(process.env.FLUXGATE_TEST_SPELLINGS ?? 60)

interface Outcome {
  readonly request: string
  readonly isServed: boolean
  readonly isCounted: boolean
}

async function ask(port: number, method: string, target: string): Promise<Outcome> {
  const request = `${method} ${target} HTTP/1.1`
  const send = `${request}\r\nHost: host\r\nConnection: close\r\n\r\n`
  const { bytes } = await converse(port, { moves: [{ send }] })
  const parsed = parseResponse(bytes, method, true)
  if (parsed.kind !== 'complete') throw new Error(`${request} got ${JSON.stringify(bytes.toString('latin1'))}`)
  const has = (name: string): boolean => valuesOf(parsed.message, name).length > 0
  return { request, isServed: has('x-protected'), isCounted: has('x-ratelimit-limit') }
}

/** Tries every spelling; the plain one must be served, and no served one may be missing in the count. */
async function tryAll(port: number): Promise<void> {
  const draw = drawFrom(seed, 'spellings')
  const random = Array.from({ length: randomCount }, () => randomSpelling(draw))
  const outcomes: Outcome[] = []
  for (const target of [...fixedSpellings, ...random])
    outcomes.push(await ask(port, draw.pick(['GET', 'GET', 'HEAD']), target))
  const plain = await Promise.all(['GET', 'HEAD'].map((method) => ask(port, method, protectedPath)))
  expect(plain.map(({ isServed, isCounted }) => [isServed, isCounted])).toEqual([
    [true, true],
    [true, true],
  ])
  const missed = outcomes.filter(({ isServed, isCounted }) => isServed && !isCounted)
  expect(missed.map(({ request }) => request)).toEqual([])
}

describe(`path spellings with FLUXGATE_TEST_SEED=${seed}`, () => {
  it.each(spellingApps)('are counted in %s', async (_, start) => {
    const server: Server = await start()
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    await tryAll((server.address() as AddressInfo).port)
  })

  const python = spawnSync('python3', ['--version']).status === 0
  if (!python) console.warn('The Python upstream is not tested: python3 is not installed.')
  it.skipIf(!python)('are counted by the gateway in front of a Python upstream', async () => {
    const child = spawn('python3', [join(import.meta.dirname, 'python-upstream.py')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => {
      child.kill('SIGKILL')
    })
    const [line] = (await once(child.stdout, 'data')) as [Buffer]
    const args = { path: protectedPath, method: 'GET', bands: [{ capacity: 1_000_000, window: '1h' }] }
    const rules = { id: 'login', rules: [{ id: 'login', ...args }] }
    const routes = [{ id: 'all', uri: `http://127.0.0.1:${Number(line)}`, filters: ['RateLimiter=login'] }]
    const { port } = await gatewayWith({ routes, rules })
    await tryAll(port)
  })
})
