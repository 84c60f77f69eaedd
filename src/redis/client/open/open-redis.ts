import { FluxGateError } from '../../../core/errors.js'
import { wholeNumber } from '../../../validation/kinds.js'
import { connectedWithin } from '../connected-within.js'
import type { RedisConnection } from '../connection.js'
import { type Library, OwnClient } from './ioredis-client.js'
import { maxConnections, type RedisOptions, redisTarget } from './target.js'

export type { RedisNode } from './address.js'
export type { RedisOptions, RedisStoreSettings } from './target.js'

/** A connection with everything a connection of our own can do. */
export type OpenedRedis = Required<RedisConnection>

export interface OpenOptions {
  /** How long callers wait for a reply: default 100. No connection is considered dead before. */
  readonly replyMs?: number | undefined
  readonly load?: () => Promise<Library>
}

/**
 * Connects in the background, from now until `close()`, however often the server goes and comes. Throws at once if the
 * options are mistaken; ioredis is loaded only here, because only those who come here need it.
 */
export function openRedis(
  options: RedisOptions,
  { replyMs = 100, load = () => import('ioredis') }: OpenOptions = {},
): OpenedRedis {
  const { connections = 1 } = options
  if (wholeNumber(1, maxConnections).parse(connections) === undefined) {
    const allowed = wholeNumber(1, maxConnections).allowed
    throw new FluxGateError(
      'FLUXGATE_CONFIG_INVALID',
      `connections: found ${String(connections)}; allowed: ${allowed}.`,
    )
  }
  const target = redisTarget(options)
  const library = load().catch((error: unknown) => {
    throw notInstalled(error)
  })
  const clients = Array.from({ length: connections }, () => new OwnClient(target, library, replyMs))
  let turn = 0

  /** The next one in turn that is connected; if none is, one of them says why. */
  function next(): OwnClient {
    for (let tried = 0; tried < clients.length; tried++) {
      turn = (turn + 1) % clients.length
      if (clients[turn]?.isUsable) break
    }
    return clients[turn] as OwnClient
  }
  return {
    isCluster: target.kind === 'cluster',
    call: (key, command, asBytes) => next().call(key, command, asBytes),
    subscribe: (channel, onMessage, onGap) => next().subscribe(channel, onMessage, onGap),
    ready: (withinMs) => connectedWithin(Promise.all(clients.map((client) => client.connected)), withinMs),
    get isConnected() {
      return clients.some((client) => client.isUsable)
    },
    get unreachable() {
      let error: unknown
      for (const client of clients) {
        error = client.unreachable
        if (error === undefined) return undefined
      }
      return error
    },
    async close() {
      await Promise.all(clients.map((client) => client.close()))
    },
  }
}

const notInstalled = (cause: unknown): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_STORE_MISCONFIGURED',
    'The package ioredis, which connects to Redis, could not be loaded: run `npm install ioredis`, or give a client of your own.',
    { cause },
  )
