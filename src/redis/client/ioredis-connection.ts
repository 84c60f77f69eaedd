import type { RedisConnection } from './connection.js'
import { isMisconfigured } from './errors.js'
import { type Listen, Subscriptions } from './subscriptions.js'
import { waitForConnection } from './wait-for-connection.js'

/** The part of an ioredis `Redis` or `Cluster` that FluxGate uses. */
export interface IoredisClient {
  readonly isCluster: boolean
  readonly status: string
  createBuiltinCommand(name: string): { readonly buffer: SendCommand }
  connect(): Promise<unknown>
  on(event: 'ready' | 'end' | 'error', listener: (error: unknown) => void): unknown
  off(event: 'ready' | 'end' | 'error', listener: (error: unknown) => void): unknown
  duplicate(options: object): IoredisListener
  /** Only on a `Cluster`. */
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
 * Wraps an ioredis client. Uses `createBuiltinCommand` instead of `call`, because `call` defers commands to a later turn
 * if the client has auto-pipelining enabled. In a cluster, ioredis finds the node from the keys of the command. ioredis
 * neither transforms the replies to upper-case command names nor sends such commands to a replica.
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
      // A client with `lazyConnect` has not started to connect yet.
      if (client.status === 'wait') client.connect().catch(() => {})
      await waitForConnection(connectionAttempt(client), withinMs)
    },
    get isConnected() {
      return client.status === 'ready'
    },
    close: () => subscriptions.close(),
  }
}

/** The attempts in progress. Stores that share a client share its listeners: Node.js warns of more than ten for one event. */
const attempts = new WeakMap<IoredisClient, Promise<void>>()

/** Resolves when the client is connected or has given up. Rejects if only a configuration change can help. */
function connectionAttempt(client: IoredisClient): Promise<void> {
  const inProgress = attempts.get(client)
  if (inProgress !== undefined) return inProgress
  const attempt = new Promise<void>((resolve, reject) => {
    const fail = (error: unknown): void => {
      if (!isMisconfigured(error)) return
      reject(error)
      done()
    }
    const done = (): void => {
      client.off('ready', done)
      client.off('end', done)
      client.off('error', fail)
      attempts.delete(client)
      resolve()
    }
    client.on('ready', done)
    client.on('end', done)
    client.on('error', fail)
  })
  attempts.set(client, attempt)
  return attempt
}

/**
 * Opens a second connection, because a connection in subscriber mode cannot send other commands. In a cluster any node will
 * do: every node receives all published messages.
 */
const listenLike =
  (client: IoredisClient): Listen =>
  async (onMessage, onLost) => {
    const nodes = client.nodes?.('master') ?? [client]
    const node = nodes[Math.floor(Math.random() * nodes.length)]
    if (node === undefined) throw new Error('the client has not discovered a cluster node yet')
    const listener = node.duplicate({
      lazyConnect: true,
      retryStrategy: null,
      enableOfflineQueue: true,
      autoResubscribe: false,
      keyPrefix: '',
    })
    // Every 'error' event is followed by 'end'.
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

/** Like `plainReply`, but keeps text as buffers. Map keys must be UTF-8 if the client requests RESP3 types. */
function byteReply(reply: unknown): unknown {
  if (reply instanceof Buffer) return reply
  if (typeof reply === 'string') return Number(reply)
  if (Array.isArray(reply)) return reply.map(byteReply)
  if (typeof reply !== 'object' || reply === null) return reply
  return Object.entries(reply).flatMap(([name, value]) => [Buffer.from(name), byteReply(value)])
}

/**
 * Text arrives as buffers, so a string can only be an integer of a client with `stringNumbers`. Maps arrive as objects if
 * the client requests RESP3 types.
 */
function plainReply(reply: unknown): unknown {
  if (reply instanceof Buffer) return reply.toString()
  if (typeof reply === 'string') return Number(reply)
  if (Array.isArray(reply)) return reply.map(plainReply)
  if (typeof reply !== 'object' || reply === null) return reply
  return Object.entries(reply).flatMap(([name, value]) => [name, plainReply(value)])
}
