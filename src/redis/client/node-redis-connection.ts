import { setTimeout } from 'node:timers/promises'
import { FluxGateError } from '../../core/errors.js'
import { Hold } from '../../core/scheduling/hold.js'
import type { RedisConnection } from './connection.js'
import { listenLikeNodeRedis } from './node-redis-listener.js'
import { Subscriptions } from './subscriptions.js'

type Command = readonly (string | Buffer)[]

/** As much of a node-redis client, pool, cluster or sentinel as is used here. */
export interface NodeRedisClient {
  /** Whether `connect()` was called, and `close()` was not. */
  readonly isOpen: boolean
  /** Missing from pools, and from clusters of version 4. */
  readonly isReady?: boolean
  sendCommand(...args: unknown[]): Promise<unknown>
}

export const isNodeRedis = (client: object): client is NodeRedisClient =>
  'sendCommand' in client && typeof client.sendCommand === 'function' && 'isOpen' in client

/**
 * Reply options, which override those of the caller's client. Version 5 and later read `typeMapping`: 36 marks a bulk
 * string and 37 a RESP3 map, which is returned as a flat list. Version 4 only speaks RESP2 and reads `returnBuffers`.
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
      const opening = new Hold(withinMs)
      while (!opening.isOver && isConnecting(client)) await setTimeout(pollMs)
      opening.end()
    },
    get isConnected() {
      return client.isOpen && client.isReady !== false
    },
    close: () => subscriptions.close(),
  }
}

/** The event that ends it differs between versions and kinds of clients, so it is polled. */
const isConnecting = (client: NodeRedisClient): boolean => client.isOpen && client.isReady === false
const pollMs = 5

type Send = (key: string, command: Command, replyOptions: object) => Promise<unknown>

const toClient =
  (client: NodeRedisClient): Send =>
  (_key, command, replyOptions) =>
    client.sendCommand(command, replyOptions)

/** `false`: not only for reading, so that no replica answers. */
const toCluster =
  (client: NodeRedisClient): Send =>
  (key, command, replyOptions) =>
    client.sendCommand(key, false, command, replyOptions)

/**
 * A sentinel client takes a connection from its pool for the first of several commands, and the others share it. Two
 * that ask at the very same moment both want one of their own, and the second may wait for as long as others are busy.
 * So each begins a moment after the one before it, in the same turn still.
 */
function toSentinel(client: NodeRedisClient): Send {
  let begun: Promise<unknown> = Promise.resolve()
  return (_key, command, replyOptions) => {
    const sent = begun.then(() => ({ reply: client.sendCommand(false, command, replyOptions) }))
    begun = sent.catch(() => {})
    return sent.then(({ reply }) => reply)
  }
}

/** `legacyMode` of version 4: `sendCommand` takes a callback and returns nothing. Without it, the getter `v4` throws. */
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
    'The redis client is not connected: call `await client.connect()` before it is used, and close it after FluxGate.',
  )
