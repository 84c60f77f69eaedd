/** The record of one run: requests that clients sent, requests that reached an upstream, and every violation. */
import { type RequestMessage, valuesOf } from './http-parser.js'
import { type Plan, soundPlan } from './plan.js'
import { idOf } from './sent-stream.js'

export interface Violation {
  readonly kind: string
  readonly detail: string
}

/** One request that an upstream received completely. */
interface Arrival {
  readonly connection: number
  /** Its place on that connection. */
  readonly position: number
}

const idempotent: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE'])
const hopByHop = ['keep-alive', 'proxy-connection', 'proxy-authorization', 'http2-settings']

export class Journal {
  readonly violations: Violation[] = []
  /** Requests that reached an upstream. */
  arrived = 0
  readonly #sent = new Map<string, RequestMessage>()
  readonly #plans = new Map<string, Plan>()
  readonly #arrivals = new Map<string, Arrival[]>()
  /** Requests that an upstream received and did not answer with a single byte. */
  readonly #unanswered = new Set<string>()

  report(kind: string, detail: string): void {
    this.violations.push({ kind, detail })
  }

  sends(request: RequestMessage): void {
    const id = idOf(request.target)
    if (id === undefined) return
    if (this.#sent.has(id)) throw new Error(`A battery used the id ${id} twice.`)
    this.#sent.set(id, request)
  }

  plan(id: string, plan: Plan): void {
    this.#plans.set(id, plan)
  }

  planOf(target: string, method: string): Plan {
    const id = idOf(target) ?? 'unknown'
    return this.#plans.get(id) ?? soundPlan(id, method)
  }

  /** Whether anything but the default answer was planned. */
  hasPlan(id: string): boolean {
    return this.#plans.has(id)
  }

  countOf(id: string): number {
    return this.#arrivals.get(id)?.length ?? 0
  }

  staysSilent(target: string): void {
    this.#unanswered.add(idOf(target) ?? '')
  }

  /** A complete request at an upstream: it must be one that a client sent, unchanged, and not have arrived before. */
  arrives(request: RequestMessage, connection: number, position: number): void {
    this.arrived += 1
    const { method, target, body } = request
    const line = `${method} ${target}`
    const id = idOf(target)
    const sent = id === undefined ? undefined : this.#sent.get(id)
    if (id === undefined || sent === undefined) {
      this.report('desynchronisation', `${line} reached the upstream, but no client sent it`)
      return
    }
    if (sent.objection !== undefined) this.report('forwarded an invalid request', `${line} with ${sent.objection}`)
    if (sent.method !== method) this.report('changed request', `${line} was sent as ${sent.method} ${sent.target}`)
    if (!sent.body.equals(body)) this.report('changed body', `${line}: ${show(body)} instead of ${show(sent.body)}`)
    this.#checkRepeat(id, line, method, { connection, position })
    this.#checkHead(request)
  }

  /** Only an idempotent request may be repeated, once, after a kept connection was closed without an answer. */
  #checkRepeat(id: string, line: string, method: string, arrival: Arrival): void {
    const earlier = this.#arrivals.get(id) ?? []
    this.#arrivals.set(id, [...earlier, arrival])
    const [first] = earlier
    if (first === undefined) return
    const mayRepeat = earlier.length === 1 && idempotent.has(method) && first.position > 0
    if (!mayRepeat)
      this.report(
        'ran twice',
        `${line} reached the upstream ${earlier.length + 1} times: ${JSON.stringify([...earlier, arrival])}`,
      )
  }

  #checkHead(request: RequestMessage): void {
    const line = `${request.method} ${request.target}`
    if (request.objection !== undefined) this.report('malformed request upstream', `${line} with ${request.objection}`)
    for (const name of hopByHop)
      if (valuesOf(request, name).length > 0) this.report('hop-by-hop header', `${line} was forwarded with ${name}`)
    const codings = valuesOf(request, 'transfer-encoding')
    if (codings.length > 0 && codings.join() !== 'chunked')
      this.report('hop-by-hop header', `${line} was forwarded with Transfer-Encoding ${codings.join()}`)
    if (!/^\/[^\\#]*$/.test(request.target)) this.report('unsafe target', `${line} was forwarded`)
  }
}

export const show = (bytes: Buffer): string => {
  const text = bytes.toString('latin1')
  return JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}… (${text.length} bytes)` : text)
}
