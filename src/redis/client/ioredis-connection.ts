import { connectedWithin } from './connected-within.js'
import type { RedisConnection } from './connection.js'
import { isMisconfigured } from './connection-errors.js'
import { type Listen, Subscriptions } from './subscriptions.js'

/** As much of an ioredis `Redis` or `Cluster` as is used here. */
export interface IoredisClient {
  readonly isCluster: boolean
  readonly status: string
  createBuiltinCommand(name: string): { readonly buffer: SendCommand }
  connect(): Promise<unknown>
  on(event: 'ready' | 'end' | 'error', listener: (error: unknown) => void): unknown
  off(event: 'ready' | 'end' | 'error', listener: (error: unknown) => void): unknown
  duplicate(options: object): IoredisListener
  /** Of a cluster. */
  nodes?(role: 'master'): readonly IoredisClient[]
}

interface IoredisListener {
  connect(): Promise<unknown>
  subscribe(channel: string): Promise<unknown>
  unsubscribe(channel: string): Promise<unknown>
  ping(): Promise<unknown>
  on(event: string, listener: (...values: string[]) => void): unknown
  disconnect(): void
}

type SendCommand = (this: IoredisClient, args: readonly (string | Buffer)[]) => Promise<unknown>

export const isIoredis = (client: object): client is IoredisClient =>
  'createBuiltinCommand' in client && typeof client.createBuiltinCommand === 'function' && 'isCluster' in client

/**
 * Commands are made by `createBuiltinCommand`, not by `call`: `call` collects commands until a later turn if the client
 * pipelines by itself. The node of a cluster is found by ioredis from the keys that the command names. Names in upper
 * case have the replies of the server, not objects made of them, and are never sent to a replica.
 */
export function ioredisConnection(client: IoredisClient): RedisConnection {
  const senders = new Map<string, SendCommand>()
  function senderOf(name: string): SendCommand {
    const sender = client.createBuiltinCommand(name).buffer
    senders.set(name, sender)
    return sender
  }
  const subscriptions = new Subscriptions(listenLike(client))
  return {
    isCluster: client.isCluster,
    async call(_key, [name, ...args], asBytes) {
      const send = senders.get(String(name)) ?? senderOf(String(name))
      const reply = await send.call(client, args)
      return asBytes ? byteReply(reply) : plainReply(reply)
    },
    subscribe: (channel, onMessage, onGap) => subscriptions.subscribe(channel, onMessage, onGap),
    async ready(withinMs) {
      if (client.status === 'ready') return
      // With `lazyConnect`, the first use connects.
      if (client.status === 'wait') client.connect().catch(() => {})
      await connectedWithin(connectionAttempt(client), withinMs)
    },
    get isConnected() {
      return client.status === 'ready'
    },
    close: () => subscriptions.close(),
  }
}

/** Resolves when the client is connected, or has given up connecting. Rejects if the server rejects its credentials. */
function connectionAttempt(client: IoredisClient): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: unknown): void => {
      if (!isMisconfigured(error)) return
      reject(error)
      done()
    }
    const done = (): void => {
      client.off('ready', done)
      client.off('end', done)
      client.off('error', fail)
      resolve()
    }
    client.on('ready', done)
    client.on('end', done)
    client.on('error', fail)
  })
}

/** Whoever listens can say nothing else, so it is a connection of its own. Any node of a cluster hears what all are told. */
const listenLike =
  (client: IoredisClient): Listen =>
  async (onMessage, onLost) => {
    const nodes = client.nodes?.('master') ?? [client]
    const node = nodes[Math.floor(Math.random() * nodes.length)]
    if (node === undefined) throw new Error('no node of the cluster is known yet')
    const listener = node.duplicate({
      lazyConnect: true,
      retryStrategy: null,
      enableOfflineQueue: true,
      autoResubscribe: false,
      keyPrefix: '',
    })
    // Every error is followed by the end.
    listener.on('error', () => {})
    listener.on('end', onLost)
    listener.on('message', (channel, message) => onMessage(String(channel), String(message)))
    await listener.connect()
    return {
      subscribe: (channel) => listener.subscribe(channel),
      unsubscribe: (channel) => listener.unsubscribe(channel),
      ping: () => listener.ping(),
      close: () => listener.disconnect(),
    }
  }

/** The same as `plainReply`, with text left as buffers. Names in a map must be UTF-8 if the client asked for RESP3 types. */
function byteReply(reply: unknown): unknown {
  if (reply instanceof Buffer) return reply
  if (typeof reply === 'string') return Number(reply)
  if (Array.isArray(reply)) return reply.map(byteReply)
  if (typeof reply !== 'object' || reply === null) return reply
  return Object.entries(reply).flatMap(([name, value]) => [Buffer.from(name), byteReply(value)])
}

/**
 * Text arrives as buffers, which leaves strings to one use: integers of a client with `stringNumbers`. Maps are objects
 * for a client that asked for the reply types of RESP3.
 */
function plainReply(reply: unknown): unknown {
  if (reply instanceof Buffer) return reply.toString()
  if (typeof reply === 'string') return Number(reply)
  if (Array.isArray(reply)) return reply.map(plainReply)
  if (typeof reply !== 'object' || reply === null) return reply
  return Object.entries(reply).flatMap(([name, value]) => [name, plainReply(value)])
}
