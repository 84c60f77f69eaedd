import { FluxGateError } from '../../../core/errors.js'
import { wholeNumber } from '../../../validation/kinds.js'
import type { RedisConnection } from '../connection.js'
import { waitForConnection } from '../wait-for-connection.js'
import { type Library, OwnClient } from './ioredis-client.js'
import { maxConnections, type RedisOptions, redisTarget } from './target.js'

export type { RedisNode } from './address.js'
export type { RedisOptions, RedisStoreSettings } from './target.js'

/** A connection that was opened here and therefore supports all optional members. */
export type OpenedRedis = Required<RedisConnection>

export interface OpenOptions {
  /** How long callers wait for a reply, in milliseconds; default 100. A connection counts as dead no earlier than that. */
  readonly replyMs?: number | undefined
  readonly load?: () => Promise<Library>
}

/**
 * Connects in the background and keeps reconnecting until `close()`. Throws immediately if the options are invalid. ioredis is
 * imported only here, because it is an optional dependency.
 */
export function openRedis(
  options: RedisOptions,
  { replyMs = 100, load = importIoredis }: OpenOptions = {},
): OpenedRedis {
  const { connections = 1 } = options
  if (wholeNumber(1, maxConnections).parse(connections) === undefined) {
    const allowed = wholeNumber(1, maxConnections).allowed
    throw new FluxGateError(
      'FLUXGATE_CONFIG_INVALID',
      `connections must be ${allowed}; received ${String(connections)}.`,
    )
  }
  const target = redisTarget(options)
  const library = load().catch((error: unknown) => {
    throw notInstalled(error)
  })
  const open = (): OwnClient => new OwnClient(target, library, replyMs)
  return connections === 1 ? open() : roundRobin(Array.from({ length: connections }, open))
}

/** In a try block, because bundlers then accept that the optional dependency is missing. */
async function importIoredis(): Promise<Library> {
  try {
    return await import('ioredis')
  } catch (error) {
    return Promise.reject(error)
  }
}

function roundRobin(clients: readonly OwnClient[]): OpenedRedis {
  let turn = 0

  /** The next connected client. If none is connected, returns one whose call fails with the reason. */
  function next(): OwnClient {
    for (let tried = 0; tried < clients.length; tried++) {
      turn = (turn + 1) % clients.length
      if (clients[turn]?.isConnected) break
    }
    return clients[turn] as OwnClient
  }
  return {
    isCluster: clients.every((client) => client.isCluster),
    call: (key, command, asBytes) => next().call(key, command, asBytes),
    subscribe: (channel, onMessage, onGap) => next().subscribe(channel, onMessage, onGap),
    ready: (withinMs) => waitForConnection(Promise.all(clients.map((client) => client.connected)), withinMs),
    get isConnected() {
      return clients.some((client) => client.isConnected)
    },
    get unreachable() {
      const errors = clients.map((client) => client.unreachable)
      return errors.includes(undefined) ? undefined : errors.at(-1)
    },
    async close() {
      await Promise.all(clients.map((client) => client.close()))
    },
  }
}

const notInstalled = (cause: unknown): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_STORE_MISCONFIGURED',
    'Cannot load the ioredis package. Run `npm install ioredis`, or pass your own client.',
    { cause },
  )
