import type { RedisConnection } from './connection.js'

/** As much of an ioredis `Redis` or `Cluster` as is used here. */
export interface IoredisClient {
  readonly isCluster: boolean
  readonly status: string
  createBuiltinCommand(name: string): { readonly buffer: SendCommand }
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
  return {
    isCluster: client.isCluster,
    async call(_key, [name, ...args], asBytes) {
      const send = senders.get(String(name)) ?? senderOf(String(name))
      const reply = await send.call(client, args)
      return asBytes ? reply : plainReply(reply)
    },
    async close() {},
  }
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
