import { FluxGateError } from '../core/errors.js'
import type { RedisConnection } from './connection.js'
import { listenLikeNodeRedis } from './node-redis-listener.js'
import { Subscriptions } from './subscriptions.js'

type Command = readonly (string | Buffer)[]

/** As much of a node-redis client, pool, cluster or sentinel as is used here. */
export interface NodeRedisClient {
  /** Whether `connect()` was called, and `close()` was not. */
  readonly isOpen: boolean
  sendCommand(...args: unknown[]): Promise<unknown>
}

export const isNodeRedis = (client: object): client is NodeRedisClient =>
  'sendCommand' in client && typeof client.sendCommand === 'function' && 'isOpen' in client

/** Whatever types the caller's client maps to: text is strings, and a map (37 is its mark in RESP3) is a flat list. */
const replyTypes = { typeMapping: { 37: Array } }
/** 36 is the mark of text. */
const byteTypes = { typeMapping: { 36: Buffer, 37: Array } }

export function nodeRedisConnection(client: NodeRedisClient): RedisConnection {
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
      return send(key, command, asBytes ? byteTypes : replyTypes)
    },
    subscribe: (channel, onMessage, onGap) => subscriptions.subscribe(channel, onMessage, onGap),
    close: () => subscriptions.close(),
  }
}

type Send = (key: string, command: Command, replyTypes: object) => Promise<unknown>

const toClient =
  (client: NodeRedisClient): Send =>
  (_key, command, replyTypes) =>
    client.sendCommand(command, replyTypes)

/** `false`: not only for reading, so that no replica answers. */
const toCluster =
  (client: NodeRedisClient): Send =>
  (key, command, replyTypes) =>
    client.sendCommand(key, false, command, replyTypes)

/**
 * A sentinel client takes a connection from its pool for the first of several commands, and the others share it. Two
 * that ask at the very same moment both want one of their own, and the second may wait for as long as others are busy.
 * So each begins a moment after the one before it, in the same turn still.
 */
function toSentinel(client: NodeRedisClient): Send {
  let begun: Promise<unknown> = Promise.resolve()
  return (_key, command, replyTypes) => {
    const sent = begun.then(() => ({ reply: client.sendCommand(false, command, replyTypes) }))
    begun = sent.catch(() => {})
    return sent.then(({ reply }) => reply)
  }
}

const notConnected = (): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_STORE_MISCONFIGURED',
    'The redis client is not connected: call `await client.connect()` before it is used, and close it after FluxGate.',
  )
