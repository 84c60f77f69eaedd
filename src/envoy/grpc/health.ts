import { WireReader } from '../protobuf/wire-reader.js'
import { WireWriter } from '../protobuf/wire-writer.js'
import type { Method, StreamCall, StreamReceiver } from './method.js'
import { GrpcError } from './status.js'

const statuses = { serving: 1, notServing: 2, serviceUnknown: 3 } as const

/** grpc.health.v1.Health. All services are serving until the server drains. */
export class HealthService {
  readonly #services: ReadonlySet<string>
  readonly #watchers = new Set<StreamCall>()
  #isServing = true

  /** `services` are the names that clients may ask about. The empty name is the whole server. */
  constructor(services: readonly string[]) {
    this.#services = new Set(['', ...services])
  }

  readonly methods: readonly (readonly [string, Method])[] = [
    ['/grpc.health.v1.Health/Check', { kind: 'UNARY', handle: (message) => this.#check(serviceOf(message)) }],
    ['/grpc.health.v1.Health/Watch', { kind: 'STREAM', open: (call) => this.#watch(call) }],
  ]

  /** Reports NOT_SERVING to probes and watchers. */
  stopServing(): void {
    this.#isServing = false
    for (const call of this.#watchers) call.send(responseOf(statuses.notServing))
  }

  /** Ends all watches, so that they do not keep connections open. */
  close(): void {
    for (const call of this.#watchers) call.end(new GrpcError('UNAVAILABLE', 'The server is stopping.'))
    this.#watchers.clear()
  }

  get #status(): number {
    return this.#isServing ? statuses.serving : statuses.notServing
  }

  #check(service: string): Buffer {
    if (!this.#services.has(service)) throw new GrpcError('NOT_FOUND', 'The server has no service of this name.')
    return responseOf(this.#status)
  }

  #watch(call: StreamCall): StreamReceiver {
    let isWatching = false
    return {
      message: (message) => {
        if (isWatching) {
          call.end(new GrpcError('UNIMPLEMENTED', 'Watch takes one message; the request has several.'))
          return
        }
        isWatching = true
        const isKnown = this.#services.has(serviceOf(message))
        call.send(responseOf(isKnown ? this.#status : statuses.serviceUnknown))
        if (isKnown) this.#watchers.add(call)
      },
      end: () => {},
      closed: () => this.#watchers.delete(call),
    }
  }
}

function serviceOf(message: Buffer): string {
  const reader = new WireReader(message)
  let service = ''
  while (reader.next())
    if (reader.field === 1) service = reader.string()
    else reader.skip()
  return service
}

function responseOf(status: number): Buffer {
  const writer = new WireWriter(4)
  writer.uint(1, status)
  return writer.finish()
}
