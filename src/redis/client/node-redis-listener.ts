import type { NodeRedisClient } from './node-redis-connection.js'
import type { Listen, ListeningLink } from './subscriptions.js'

/** As much of a client that listens as is used here. */
interface Listener {
  connect(): Promise<unknown>
  subscribe(channel: string, onMessage: (message: string) => void): Promise<unknown>
  unsubscribe(channel: string): Promise<unknown>
  ping?(): Promise<unknown>
  on(event: string, listener: (value?: unknown) => void): unknown
  /** How clients are ended at once, from version 5 on and before. */
  destroy?(): unknown
  disconnect?(): unknown
}

interface Node {
  duplicate(): Listener
}

interface Original extends NodeRedisClient {
  duplicate?(): Listener
  /** Of a pool. */
  execute?(use: (client: Node) => Listener): Promise<Listener>
  /** Of a cluster. */
  getRandomNode?(): unknown
  nodeClient?(node: unknown): Node | Promise<Node>
}

/**
 * Whoever listens can say nothing else, so it is a connection of its own, with the settings of the caller's. Left alone it
 * would connect again by itself, without saying what was missed; so it is given up at the first sign of trouble.
 */
export async function listenLikeNodeRedis(
  client: NodeRedisClient,
  ...[onMessage, onLost]: Parameters<Listen>
): Promise<ListeningLink> {
  const listener = await listenerLike(client)
  const close = (): void => {
    // A client that is closed already objects.
    Promise.resolve()
      .then(() => (listener.destroy ?? listener.disconnect)?.call(listener))
      .catch(() => {})
  }
  const trouble = new Promise<never>((_, reject) => {
    listener.on('error', (error) => reject(error))
  })
  trouble.catch(onLost)
  for (const event of ['reconnecting', 'end']) listener.on(event, onLost)
  try {
    await Promise.race([listener.connect(), trouble])
  } catch (error) {
    close()
    throw error
  }
  // Of a sentinel, which learns of its first primary before it is connected.
  listener.on('topology-change', (event) => {
    if (event !== null && typeof event === 'object' && 'type' in event && event.type === 'MASTER_CHANGE') onLost()
  })
  return {
    subscribe: (channel) => listener.subscribe(channel, (message) => onMessage(channel, message)),
    unsubscribe: (channel) => listener.unsubscribe(channel),
    async ping() {
      await listener.ping?.()
    },
    close,
  }
}

async function listenerLike(client: Original): Promise<Listener> {
  if (client.getRandomNode && client.nodeClient) return (await client.nodeClient(client.getRandomNode())).duplicate()
  if (client.execute) return client.execute((one) => one.duplicate())
  if (client.duplicate) return client.duplicate()
  throw new Error('this client cannot be duplicated')
}
