/** A TCP proxy that can add latency, drop data, or cut and refuse connections. */
import { connect, createServer, type Server, type Socket } from 'node:net'
import { freePort } from './free-port.js'

export interface TcpProxy {
  readonly host: string
  readonly port: number
  /** Delay in each direction; a round trip takes twice as long. */
  setDelay(ms: number): void
  /**
   * Simulates a partition: connections are accepted and stay open, and nothing is delivered. After `resume` the queued
   * data arrives in order, including the end of a connection, as with TCP.
   */
  hang(): void
  resume(): void
  /** Resets all connections; new ones are accepted. */
  cut(): void
  /** Drops all further data on the open connections without closing them; new connections work. */
  strand(): void
  /** Ends the direction from the target to the clients with a FIN; clients can still send. */
  halfClose(): void
  /** Refuses new connections, as if nothing listened; open ones stay. */
  refuse(): Promise<void>
  accept(): Promise<void>
  connections(): number
  stop(): Promise<void>
}

interface Network {
  delayMs: number
  silent: boolean
  /** Connections that drop everything. */
  readonly stranded: WeakSet<Socket>
  /** Runs when the partition ends. */
  readonly onResume: Set<() => void>
}

const host = '127.0.0.1'

export async function startProxy(targetPort: number, targetHost = host): Promise<TcpProxy> {
  const network: Network = { delayMs: 0, silent: false, stranded: new WeakSet(), onResume: new Set() }
  const sockets = new Set<Socket>()
  const clientSockets = new Set<Socket>()

  function join(client: Socket): void {
    const target = connect({ port: targetPort, host: targetHost, allowHalfOpen: true, noDelay: true })
    clientSockets.add(client)
    client.setNoDelay(true).once('close', () => clientSockets.delete(client))
    for (const socket of [client, target]) {
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
      // The close event that follows is relayed to the other side.
      socket.on('error', () => {})
    }
    forward(client, target, network)
    forward(target, client, network)
  }
  const cut = () => {
    // Node.js cannot reset a socket during its shutdown: the socket would stay open and keep the process alive.
    for (const socket of sockets) socket.writableEnded ? socket.destroy() : socket.resetAndDestroy()
  }
  const resume = () => {
    network.silent = false
    for (const deliver of network.onResume) deliver()
  }

  const first = await listenSomewhere(join)
  const { port } = first
  let server: Server | undefined = first.server
  return {
    host,
    port,
    setDelay(ms) {
      network.delayMs = ms
    },
    hang() {
      network.silent = true
    },
    resume,
    cut,
    strand() {
      for (const socket of sockets) network.stranded.add(socket)
    },
    halfClose() {
      for (const client of clientSockets) client.end()
    },
    async refuse() {
      server?.close()
      server = undefined
    },
    async accept() {
      server ??= await listen(port, join)
    },
    connections: () => clientSockets.size,
    async stop() {
      server?.close()
      server = undefined
      cut()
    },
  }
}

/** Another process may take the port before the proxy binds it. */
async function listenSomewhere(onConnection: (client: Socket) => void): Promise<{ server: Server; port: number }> {
  for (;;) {
    const port = await freePort()
    const server = await listen(port, onConnection).catch(() => undefined)
    if (server) return { server, port }
  }
}

function listen(port: number, onConnection: (client: Socket) => void): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer({ allowHalfOpen: true }, onConnection)
    server.once('error', reject)
    server.listen(port, host, () => resolve(server))
  })
}

/** One direction. Keeps the order of data and end, even if the delay changes in between. */
function forward(from: Socket, to: Socket, network: Network): void {
  const underWay: { readonly dueAt: number; readonly deliver: () => void }[] = []
  let timer: NodeJS.Timeout | undefined

  function deliverDue(): void {
    clearTimeout(timer)
    if (network.silent) return
    for (let next = underWay[0]; next; next = underWay[0]) {
      const inMs = next.dueAt - performance.now()
      if (inMs > 0) {
        timer = setTimeout(deliverDue, Math.ceil(inMs))
        return
      }
      underWay.shift()
      next.deliver()
    }
  }
  function send(deliver: () => void): void {
    if (network.stranded.has(from)) return
    underWay.push({ dueAt: performance.now() + network.delayMs, deliver })
    deliverDue()
  }
  network.onResume.add(deliverDue)
  from.on('data', (chunk) => send(() => to.writable && to.write(chunk)))
  from.once('end', () => send(() => to.end()))
  from.once('close', () => send(() => to.destroySoon()))
  to.once('close', () => {
    clearTimeout(timer)
    network.onResume.delete(deliverDue)
  })
}
