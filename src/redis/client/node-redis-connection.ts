import { setTimeout } from 'node:timers/promises'
import { FluxGateError } from '../../core/errors.js'
import { ConnectionWait } from '../../core/scheduling/connection-wait.js'
import type { RedisConnection } from './connection.js'
import { listenLikeNodeRedis } from './node-redis-listener.js'
import { Subscriptions } from './subscriptions.js'

type Command = readonly (string | Buffer)[]

/** The part of a node-redis client, pool, cluster or sentinel that FluxGate uses. */
export interface NodeRedisClient {
  /** True from `connect()` until `close()`. */
  readonly isOpen: boolean
  /** Missing from pools, and from clusters of version 4. */
  readonly isReady?: boolean
  sendCommand(...args: unknown[]): Promise<unknown>
}

export const isNodeRedis = (client: object): client is NodeRedisClient =>
  'sendCommand' in client && typeof client.sendCommand === 'function' && 'isOpen' in client

/**
 * Reply options, which override those of the caller's client. Version 5 and later read `typeMapping`: 36 marks a bulk
 * string and 37 a RESP3 map, which is returned as a flat list. Version 4 supports only RESP2 and reads `returnBuffers`.
 */
const textReplies = { typeMapping: { 37: Array }, returnBuffers: false }
const byteReplies = { typeMapping: { 36: Buffer, 37: Array }, returnBuffers: true }

export function nodeRedisConnection(client: NodeRedisClient): RedisConnection {
  if (isLegacyMode(client)) throw legacyMode()
  const isCluster = 'nodeByAddress' in client
  const send = isCluster ? toCluster(client) : 'getMasterNode' in client ? toSentinel(client) : toClient(client)
  const subscriptions = new Subscriptions(async (onMessage, onLost) => {
    if (!client.isOpen) throw notConnected()
    return listenLikeNodeRedis(client, onMessage, onLost)
  })
  return {
    isCluster,
    async call(key, command, asBytes) {
      if (!client.isOpen) throw notConnected()
      return send(key, command, asBytes ? byteReplies : textReplies)
    },
    subscribe: (channel, onMessage, onGap) => subscriptions.subscribe(channel, onMessage, onGap),
    async ready(withinMs) {
      const opening = new ConnectionWait(withinMs)
      while (!opening.isOver && isConnecting(client)) await setTimeout(pollMs)
      opening.end()
    },
    get isConnected() {
      return client.isOpen && client.isReady !== false
    },
    close: () => subscriptions.close(),
  }
}

/** Polled, because the event that ends connecting differs between versions and kinds of clients. */
const isConnecting = (client: NodeRedisClient): boolean => client.isOpen && client.isReady === false
const pollMs = 5

type Send = (key: string, command: Command, replyOptions: object) => Promise<unknown>

const toClient =
  (client: NodeRedisClient): Send =>
  (_key, command, replyOptions) =>
    client.sendCommand(command, replyOptions)

/** `false` marks the command as not read-only, so that the client never sends it to a replica. */
const toCluster =
  (client: NodeRedisClient): Send =>
  (key, command, replyOptions) =>
    client.sendCommand(key, false, command, replyOptions)

/**
 * A sentinel client leases a pool connection for the first of several concurrent commands, and the others share it. Two
 * commands that start at the same moment each try to lease one, and the second may wait while all are busy. Each command
 * therefore starts one microtask after the previous one, in the same turn of the event loop.
 */
function toSentinel(client: NodeRedisClient): Send {
  let previous: Promise<unknown> = Promise.resolve()
  return (_key, command, replyOptions) => {
    const sent = previous.then(() => ({ reply: client.sendCommand(false, command, replyOptions) }))
    previous = sent.catch(() => {})
    return sent.then(({ reply }) => reply)
  }
}

/**
 * Detects `legacyMode` of version 4, in which `sendCommand` takes a callback and returns nothing. The getter `v4` throws
 * when the mode is off.
 */
function isLegacyMode(client: NodeRedisClient & { readonly v4?: unknown }): boolean {
  try {
    return client.v4 !== undefined
  } catch {
    return false
  }
}

const legacyMode = (): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    'client must not be a node-redis client in legacy mode. Create one without `legacyMode: true` for FluxGate.',
  )

const notConnected = (): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_STORE_MISCONFIGURED',
    'The node-redis client is not connected. Call `await client.connect()` before FluxGate uses it, and close it after FluxGate.',
  )
