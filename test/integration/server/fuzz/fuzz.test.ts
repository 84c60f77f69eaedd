/**
 * Every route of the server is asked for things that its schemas do not foresee: other types, numbers beyond any range, text
 * in all scripts, depth, `__proto__`. Nothing may make it answer with 5xx, or differently from what it describes.
 *
 * `FLUXGATE_FUZZ_REQUESTS=50000 npx vitest run test/integration/server/fuzz` asks more often; `FLUXGATE_FUZZ_SEED`
 * repeats a run.
 */
import { Agent, request } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import { seededRandom } from '../../../../src/simulate/random.js'
import { wholeServer } from '../../../fixtures/test-server.js'
import { FuzzRequests } from './requests.js'

const count = Number(process.env.FLUXGATE_FUZZ_REQUESTS ?? 1_000)
const seed = Number(process.env.FLUXGATE_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31))
const atOnce = 8
/** What must have been reached by requests that pass. Few of them are about something that exists, so some runs take longer. */
const toReach = ['check', 'checkBatch', 'getRuleSet', 'getRule', 'getBucket', 'listRules', 'listOverrides']

describe('requests that nobody foresaw', () => {
  it(`at least ${count} of them, seed ${seed}: no 5xx, no crash, and every refusal is a problem`, async () => {
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
        // Among all that is asked, rule sets are deleted: requests about those that exist are the more interesting ones.
        if (asked % 50 === 0) await ask('PUT', '/api/rule-sets/shop', shop.body)
        await askOne()
      }
    }
    await Promise.all(Array.from({ length: atOnce }, worker))

    // It still works, and what it has seen has not become part of it.
    expect((await ask('GET', '/health/live')).status).toBe(200)
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
    expect(lines.filter((line) => 'stack' in line)).toEqual([])
    // Both sides were reached: requests that pass, and all kinds that do not.
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
    // Said, because node:http does not for every method, and what follows would be taken for another request.
    const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }
    const sent = { ...headers, ...length }
    const outgoing = request({ port, host: '127.0.0.1', method, path, headers: sent, agent }, (response) => {
      const type = response.headers['content-type']?.split(';')[0] ?? ''
      const status = response.statusCode ?? 0
      // A stream of events has no end.
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
