import type { NodeRedisClient } from './node-redis-connection.js'
import type { Listen, ListeningLink } from './subscriptions.js'

/** The part of a node-redis subscriber client that FluxGate uses. */
interface Listener {
  connect(): Promise<unknown>
  subscribe(channel: string, onMessage: (message: string) => void): Promise<unknown>
  unsubscribe(channel: string): Promise<unknown>
  ping?(): Promise<unknown>
  on(event: string, listener: (value?: unknown) => void): unknown
  /** Closes the client immediately: `destroy` from version 5 on, `disconnect` in version 4. */
  destroy?(): unknown
  disconnect?(): unknown
}

interface Node {
  duplicate(): Listener
}

interface Original extends NodeRedisClient {
  duplicate?(): Listener
  /** Only on a pool. */
  execute?(use: (client: Node) => Listener): Promise<Listener>
  /** Only on a cluster, as is `nodeClient`. */
  getRandomNode?(): unknown
  nodeClient?(node: unknown): Node | Promise<Node>
}

/**
 * Opens a subscriber connection with the settings of the caller's client. A connection in subscriber mode cannot send other
 * commands. node-redis would reconnect it silently and hide that messages were missed, so the first error or reconnection
 * attempt counts as a loss.
 */
export async function listenLikeNodeRedis(
  client: NodeRedisClient,
  ...[onMessage, onLost]: Parameters<Listen>
): Promise<ListeningLink> {
  const listener = await listenerLike(client)
  const close = (): void => {
    // Throws if the client is already closed.
    Promise.resolve()
      .then(() => (listener.destroy ?? listener.disconnect)?.call(listener))
      .catch(() => {})
  }
  const firstError = new Promise<never>((_, reject) => {
    listener.on('error', (error) => reject(error))
  })
  firstError.catch(onLost)
  for (const event of ['reconnecting', 'end']) listener.on(event, onLost)
  try {
    await Promise.race([listener.connect(), firstError])
  } catch (error) {
    close()
    throw error
  }
  // Sentinel clients only. Registered after connecting, because discovering the first primary emits the event too.
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
  throw new Error('the client has no duplicate() method, which subscriptions require')
}
