import type { ReservationRequest } from '../../../../core/reservations/reservation-storage.js'
import type { Costs } from '../../../../core/rule.js'
import type { RedisConnection } from '../../../../redis/client/connection.js'
import { wrapRedisError } from '../../../../redis/client/errors.js'
import { hashSlot } from '../../../../redis/client/hash-slot.js'
import { bytesReply, integerReply, malformedReply, unexpectedReply } from '../../../../redis/client/replies.js'
import { Script } from '../../../../redis/client/script.js'
import { bucketPrefix } from '../../bucket-keys.js'
import { describe, parseDescription } from '../description.js'
import { coordinatorScript } from './lua/scripts.generated.js'

/** ABORTING: a slot has rejected the charge, and what was charged in others is being returned. */
export type CoordinatorState = 'PENDING' | 'MADE' | 'ENDED' | 'ABORTING'

/** The record of a reservation in the slot of its id. */
export interface CoordinatorRecord {
  /** Identifies the records of this attempt in the slots of the buckets. */
  readonly attempt: string
  readonly state: CoordinatorState
  readonly madeAt: number
  readonly request: ReservationRequest
  /** The actual costs of a reservation that has ended; undefined if it was canceled. */
  readonly amounts: Costs | undefined
}

export interface CoordinatorOptions {
  readonly connection: RedisConnection
  readonly prefix: string
  /** The time for the script in ticks; negative for that of the server. */
  readonly now: () => number
}

const states: readonly CoordinatorState[] = ['PENDING', 'MADE', 'ENDED', 'ABORTING']
const codeOf = (state: CoordinatorState): string => String(states.indexOf(state))

/** Keeps the coordinator record of each reservation, in the slot of its id. Every method returns the record after the change. */
export class Coordinator {
  readonly #options: CoordinatorOptions
  readonly #script = new Script(coordinatorScript)

  constructor(options: CoordinatorOptions) {
    this.#options = options
  }

  read(id: string): Promise<CoordinatorRecord | undefined> {
    return this.#run(id, ['READ'])
  }

  /** Creates the record, unless there is one. */
  async begin(request: ReservationRequest, attempt: string, state: 'PENDING' | 'MADE'): Promise<CoordinatorRecord> {
    const { id, ttlTicks, onExpire, charges } = request
    const text = `${ttlTicks} ${onExpire} ${describe(request, charges)}`
    const record = await this.#run(id, ['BEGIN', attempt, codeOf(state), String(ttlTicks), text])
    if (record === undefined) throw malformedReply('reservation')
    return record
  }

  move(
    id: string,
    attempt: string,
    from: CoordinatorState,
    to: CoordinatorState,
  ): Promise<CoordinatorRecord | undefined> {
    return this.#run(id, ['MOVE', attempt, codeOf(from), codeOf(to)])
  }

  /** Removes the record of an attempt that was not made. */
  forget(id: string, attempt: string): Promise<CoordinatorRecord | undefined> {
    return this.#run(id, ['FORGET', attempt])
  }

  /** Decides how a reservation ends. The first call for an id wins. */
  end(id: string, amounts: Costs | undefined): Promise<CoordinatorRecord | undefined> {
    return this.#run(id, ['END', JSON.stringify(amounts ?? null)])
  }

  async #run(id: string, action: readonly string[]): Promise<CoordinatorRecord | undefined> {
    const { connection, prefix, now } = this.#options
    const key = `${bucketPrefix(prefix, id)}:reservation`
    try {
      const reply = await this.#script.run(connection, hashSlot(key), [key], [String(now()), ...action])
      return recordIn(id, reply)
    } catch (error) {
      throw wrapRedisError(error, action[0] === 'BEGIN' ? 'reserve permits' : 'settle a reservation')
    }
  }
}

function recordIn(id: string, reply: unknown): CoordinatorRecord | undefined {
  if (!Array.isArray(reply)) throw unexpectedReply('a list', reply)
  if (reply.length === 0) return undefined
  const [attempt, code, madeAt, text, ending] = reply
  const state = states[integerReply(code)]
  const [head, ttlTicks, onExpire] = /^(\d+) (KEEP|REFUND) /.exec(bytesReply(text).toString('latin1')) ?? []
  if (state === undefined || head === undefined) throw malformedReply('reservation')
  const { terms, charges } = parseDescription(bytesReply(text).toString('latin1', head.length))
  return {
    ...{ attempt: bytesReply(attempt).toString('latin1'), state },
    madeAt: integerReply(madeAt),
    request: {
      ...{ id, isNamed: true, ...terms, charges },
      ttlTicks: Number(ttlTicks),
      onExpire: onExpire === 'REFUND' ? 'REFUND' : 'KEEP',
    },
    amounts: state === 'ENDED' ? (JSON.parse(bytesReply(ending).toString()) ?? undefined) : undefined,
  }
}
