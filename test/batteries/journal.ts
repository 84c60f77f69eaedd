/** The record of one run: requests that clients sent, requests that reached an upstream, and every violation. */
import { type RequestMessage, valuesOf } from './http/http-parser.js'
import { idOf } from './http/sent-stream.js'
import { type Plan, soundPlan } from './plan.js'

export interface Violation {
  readonly kind: string
  readonly detail: string
}

/** One request that an upstream began to process. */
interface Execution {
  readonly connection: number
  /** Its place on that connection. */
  readonly position: number
}

const hopByHop = ['keep-alive', 'proxy-connection', 'proxy-authorization', 'http2-settings']

export class Journal {
  readonly violations: Violation[] = []
  /** Requests that reached an upstream. */
  arrived = 0
  readonly #sent = new Map<string, RequestMessage>()
  readonly #plans = new Map<string, Plan>()
  readonly #executions = new Map<string, Execution[]>()

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

  /**
   * An upstream begins to process a request: it has read the head, or the whole request, and follows its plan. This happens
   * once at most, whatever the method and whatever became of the connection. A request that an upstream never read is not
   * recorded, so a gateway may send it again.
   */
  executes(target: string, execution: Execution): void {
    const id = idOf(target)
    if (id === undefined) return
    const all = [...(this.#executions.get(id) ?? []), execution]
    this.#executions.set(id, all)
    if (all.length > 1) this.report('ran twice', `${target} was processed ${all.length} times: ${JSON.stringify(all)}`)
  }

  /** A complete request at an upstream: it must be one that a client sent, unchanged. */
  arrives(request: RequestMessage): void {
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
    this.#checkHead(request)
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
