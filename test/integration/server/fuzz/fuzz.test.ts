/**
 * Sends requests to every route that its schemas do not foresee: other types, numbers out of range, text in all
 * scripts, deep nesting, `__proto__`. No request may cause a 5xx or a response that differs from the OpenAPI document.
 * `FLUXGATE_FUZZ_REQUESTS=50000 npx vitest run test/integration/server/fuzz` sends more; `FLUXGATE_FUZZ_SEED` repeats a
 * run.
 */
import { Agent, request } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import { seededRandom } from '../../../../src/core/seeded-random.js'
import { wholeServer } from '../../../fixtures/test-server.js'
import { FuzzRequests } from './requests.js'

const count = Number(process.env.FLUXGATE_FUZZ_REQUESTS ?? 1_000)
const seed = Number(process.env.FLUXGATE_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31))
const atOnce = 8
/**
 * Operations that must have succeeded at least once. Few requests refer to something that exists, so some runs take
 * longer.
 */
const toReach = ['check', 'checkBatch', 'getRuleSet', 'getRule', 'getBucket', 'listRules', 'listOverrides']

describe('random requests', () => {
  it(`at least ${count}, seed ${seed}: no 5xx, no crash, and every rejection is a problem document`, async () => {
    const { port, ask, lines } = await wholeServer()
    const { body: document } = await ask('GET', '/openapi.json')
    const shop = await ask('GET', '/api/rule-sets/shop')
    const requests = new FuzzRequests(document, seededRandom(seed))
    const agent = new Agent({ keepAlive: true, maxSockets: atOnce })
    onTestFinished(() => agent.destroy())
    const statuses = new Map<number, number>()
    const operations = new Map<string, number>()
    let asked = 0

    async function askOne(): Promise<void> {
      const { method, path, headers, body, operation } = requests.next()
      const asking = `seed ${seed}: ${method} ${path.slice(0, 200)} ${JSON.stringify(headers)} ${String(body).slice(0, 300)}`
      const { status, type, text } = await send(port, agent, { method, path, headers, body }).catch((cause) => {
        throw new Error(asking, { cause })
      })
      const what = `${asking}\n→ ${status} ${text.slice(0, 300)}`
      if (status >= 500) throw new Error(what)
      if (status >= 400 && method !== 'HEAD') {
        const problem = type === 'application/problem+json' ? JSON.parse(text) : undefined
        if (problem?.status !== status || !/^FLUXGATE_[A-Z_]+$/.test(problem.code)) throw new Error(what)
      }
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (status < 400) operations.set(operation, (operations.get(operation) ?? 0) + 1)
    }

    const isDone = (): boolean => asked >= count && toReach.every((name) => operations.has(name))
    const worker = async (): Promise<void> => {
      while (!isDone()) {
        asked += 1
        // Some requests delete rule sets, and requests about existing ones are more interesting.
        if (asked % 50 === 0) await ask('PUT', '/api/rule-sets/shop', shop.body)
        await askOne()
      }
    }
    await Promise.all(Array.from({ length: atOnce }, worker))

    // The server still works, and no request has changed it otherwise.
    expect((await ask('GET', '/health/live')).status).toBe(200)
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
    expect(lines.filter((line) => 'stack' in line)).toEqual([])
    // Both successful requests and all kinds of rejected ones occurred.
    expect(statuses.get(200) ?? 0).toBeGreaterThan(asked / 10)
    expect(statuses.get(400) ?? 0).toBeGreaterThan(asked / 10)
    if (count >= 50_000) console.log(`seed ${seed}`, Object.fromEntries(statuses), Object.fromEntries(operations))
  }, 3_600_000)
})

interface Sent {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
}

function send(port: number, agent: Agent, { method, path, headers, body }: Sent) {
  return new Promise<{ status: number; type: string; text: string }>((resolve, reject) => {
    // Set explicitly, because node:http omits it for some methods, and the body would be parsed as another request.
    const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }
    const sent = { ...headers, ...length }
    const outgoing = request({ port, host: '127.0.0.1', method, path, headers: sent, agent }, (response) => {
      const type = response.headers['content-type']?.split(';')[0] ?? ''
      const status = response.statusCode ?? 0
      // The event stream does not end.
      if (type === 'text/event-stream') {
        response.destroy()
        resolve({ status, type, text: '' })
        return
      }
      let text = ''
      response.setEncoding('utf8').on('data', (data) => {
        text += data
      })
      response.on('end', () => resolve({ status, type, text }))
      response.on('error', reject)
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}
