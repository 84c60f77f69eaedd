/** Requests of the harness to the server and to the gateway. */
import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import { type Answer, answerOf, type Request } from './load.mjs'

interface Reply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

const agent = new Agent({ keepAlive: true })

function send(url: string, method: string, headers: Record<string, string>, body = ''): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, agent, headers: { ...headers, 'content-length': Buffer.byteLength(body) } })
    sent.on('error', reject)
    sent.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece
      })
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }))
    })
    sent.end(body)
  })
}

const json = { 'content-type': 'application/json' }

export const askServer =
  (url: string, ruleSetId: string) =>
  async ({ path, user, api, permits }: Request): Promise<Answer> => {
    const body = JSON.stringify({ ruleSetId, path, method: 'GET', userId: user, apiKey: api, permits })
    const { status, text } = await send(`${url}/api/ratelimit/check`, 'POST', json, body)
    if (status !== 200) throw new Error(`the server answered ${status}: ${text}`)
    return answerOf(JSON.parse(text), 'server')
  }

/** A request through the gateway costs one permit, and its headers describe the one limit of its path. */
export const askGateway =
  (url: string) =>
  async ({ path, user, api }: Request): Promise<Answer & { permits: number }> => {
    const { status, headers, text } = await send(url + path, 'GET', { 'x-user-id': user, 'x-api-key': api })
    const common = { delayMs: 0, decidedBy: 'gateway', permits: 1 }
    if (status === 503 && text.includes('temporary-reduced-capacity'))
      return { ...common, allowed: false, degraded: true, reason: 'STORE_FAILURE', charges: [] }
    if (status !== 200 && status !== 429) throw new Error(`the gateway answered ${status}: ${text}`)
    const limit = Number(headers['x-ratelimit-limit'])
    // Whole seconds, rounded up: exact for windows that end with a second.
    const resetAt = Number(headers['x-ratelimit-reset']) * 1_000
    const charges = Number.isNaN(limit) ? [] : [{ rule: path.slice(1), limit, resetAt }]
    return { ...common, allowed: status === 200, degraded: false, reason: String(status), charges }
  }

/** A request that needs no decision, so that its time is that of the process alone. */
export const askControl = (url: string) => async (): Promise<true> => {
  const { status } = await send(url, 'GET', {})
  if (status !== 200) throw new Error(`${url} answered ${status}`)
  return true
}

export async function editRule(url: string, ruleSetId: string, rule: string, band: object): Promise<void> {
  const target = `${url}/api/rule-sets/${ruleSetId}/rules/${rule}`
  const { status, text } = await send(target, 'PATCH', json, JSON.stringify({ bands: [band] }))
  if (status !== 200) throw new Error(`the edit of rule ${rule} was answered ${status}: ${text}`)
}
