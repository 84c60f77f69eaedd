import { createServer } from 'node:net'

/**
 * Below the ephemeral range, so that the port of a server that is down for a moment is still free when it restarts. A
 * cluster node also needs the port 10 000 above, for its bus.
 */
const lowest = 10_000
const highest = 22_700
const busOffset = 10_000

export async function freePort(): Promise<number> {
  for (;;) {
    const port = lowest + Math.floor(Math.random() * (highest - lowest))
    if ((await isFree(port)) && (await isFree(port + busOffset))) return port
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
