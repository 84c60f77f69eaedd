// @ts-check
/** The gateway and the middlewares of both checkouts, measured with the load generator of this one. */
import { cpuTimeUs, startLoad, startProgram } from '../http/processes.mjs'
import { connections } from '../http/rounds.mjs'
import { Broken } from '../measure.mjs'

const warmUpSeconds = 1
const seconds = 2

/** @typedef {{ readonly name: string, readonly file: string, readonly args: readonly string[] }} Program relative to a checkout */

/** @returns {Promise<import('./pairs.mjs').Area>} */
export async function gatewayArea() {
  const upstream = await startProgram('upstream', 'upstream.mjs')
  const program = { name: 'gateway', file: 'bench/http/proxies/fluxgate.mjs', args: [String(upstream.port)] }
  return httpArea([program], upstream.stop)
}

/** @returns {Promise<import('./pairs.mjs').Area>} */
export const middlewareArea = () =>
  httpArea(
    ['express', 'fastify'].map((name) => ({ name, file: `bench/http/apps/${name}.mjs`, args: ['fluxgate'] })),
    () => {},
  )

/**
 * @param {readonly Program[]} programs
 * @param {() => unknown} onStop
 * @returns {Promise<import('./pairs.mjs').Area>}
 */
async function httpArea(programs, onStop) {
  const load = await startLoad()
  return {
    async measure(root) {
      /** @type {Record<string, number>} */
      const figures = {}
      for (const program of programs) Object.assign(figures, await measured(program, root, load))
      return figures
    },
    stop() {
      load.stop()
      onStop()
    },
  }
}

/**
 * @param {Program} program
 * @param {URL} root
 * @param {Awaited<ReturnType<typeof startLoad>>} load
 */
async function measured({ name, file, args }, root, load) {
  const server = await startProgram(name, new URL(file, root).href, ...args)
  try {
    const order = { port: server.port, connections }
    await load.ask({ ...order, seconds: warmUpSeconds })
    const usedBefore = cpuTimeUs(server.pid)
    const { perSecond, p99Ms, others } = await load.ask({ ...order, seconds })
    if (others > 0) throw new Broken(`${name} answered ${others} requests with a status other than 200.`)
    return {
      [`${name}: requests/s`]: perSecond,
      [`${name}: p99 ms`]: p99Ms,
      [`${name}: CPU µs per request`]: (cpuTimeUs(server.pid) - usedBefore) / (perSecond * seconds),
    }
  } finally {
    server.stop()
  }
}
