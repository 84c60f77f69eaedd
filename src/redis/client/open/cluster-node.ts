import type { Redis } from 'ioredis'

/**
 * Changes how ioredis treats the connection to one node of a cluster. By default it connects to a primary when the first
 * command needs it, and drops the node when the connection is lost. Commands then go to some other node, to be redirected.
 * That node may have lost its connection at the same time, and a replica rejects them.
 *
 * `onClose` is called when the connection was lost, and commands for the node are queued for the next one.
 */
export function prepareClusterNode(node: Redis, onClose: () => void): void {
  // In READONLY mode a replica rejects scripts that write. Without it, the replica redirects them to its primary.
  node.readonly = async () => 'OK'
  // ioredis ignores the reply to ASKING, so a lost connection would end the process with an unhandled rejection.
  const asking = node.asking.bind(node)
  node.asking = () => {
    const reply = asking()
    reply.catch(() => {})
    return reply
  }
  node.on('ready', () => {
    // Reconnects at once, and only once: if that fails, another node may be the primary now.
    node.options.retryStrategy = (attempt) => (attempt === 1 ? 0 : null)
    // A command that finds the socket closed is rejected at once. In the queue it would be rejected by the 'close' event,
    // with the same error as commands that were sent.
    node.options.enableOfflineQueue = false
  })
  node.on('close', () => {
    node.options.enableOfflineQueue = true
    onClose()
  })
  if (!node.options.readOnly && node.status === 'wait') node.connect().catch(() => {})
}
