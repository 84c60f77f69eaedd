import { createServer } from 'node:net'
import type { Config } from '../../config/config.js'
import { messageOf } from '../../core/errors.js'
import { isLoopback } from '../../server/request/loopback.js'
import { rateLimitHost } from '../rate-limit-server.js'
import { type Check, type Finding, fail, ok, type Part } from './finding.js'

interface Listener {
  /** The setting of its port. */
  readonly name: string
  readonly host: string
  readonly port: number
  /** Listeners that run in the same process. */
  readonly with: readonly string[]
}

/** Checks that each port is free, and that no two listeners of one command have the same. */
export const ports: Check = async (config, parts) => {
  const findings: Finding[] = []
  const listeners: Listener[] = []
  for (const listener of listenersOf(config, parts)) {
    if ('status' in listener) {
      findings.push(listener)
      continue
    }
    const other = listeners.find((earlier) => isSame(earlier, listener))
    findings.push(other === undefined ? await trial(listener) : conflict(listener, other))
    listeners.push(listener)
  }
  return findings
}

function listenersOf(config: Config, parts: readonly Part[]): (Listener | Finding)[] {
  const { server, gateway } = config
  const result: (Listener | Finding)[] = []
  if (parts.includes('server')) {
    result.push({ name: 'server.port', host: server.host, port: server.port, with: [] })
    if (server.grpcPort !== undefined) result.push(grpcListener(config, server.grpcPort))
  }
  if (parts.includes('gateway')) {
    const { host, port, metricsHost, metricsPort } = gateway
    result.push({ name: 'gateway.port', host, port, with: ['server.port', 'server.grpcPort'] })
    if (metricsPort !== undefined)
      result.push(
        server.adminToken !== undefined || isLoopback(metricsHost)
          ? { name: 'gateway.metricsPort', host: metricsHost, port: metricsPort, with: ['gateway.port'] }
          : fail(
              'gateway.metricsPort',
              `metrics would be public on ${metricsHost}: no admin token is set`,
              'Set FLUXGATE_ADMIN_TOKEN, or gateway.metricsHost: 127.0.0.1.',
            ),
      )
  }
  return result
}

function grpcListener(config: Config, port: number): Listener | Finding {
  const name = 'server.grpcPort'
  try {
    return { name, host: rateLimitHost(config, config.server.host), port, with: ['server.port'] }
  } catch (error) {
    return fail(name, messageOf(error), 'Set a token, or an address that only this machine can reach.')
  }
}

const isAny = (host: string): boolean => host === '0.0.0.0' || host === '::'

const isSame = (earlier: Listener, later: Listener): boolean =>
  later.with.includes(earlier.name) &&
  later.port !== 0 &&
  later.port === earlier.port &&
  (later.host === earlier.host || isAny(later.host) || isAny(earlier.host))

const conflict = ({ name, host, port }: Listener, other: Listener): Finding =>
  fail(name, `${host}:${port} is also ${other.name}, and one process listens on both`, 'Choose another port.')

async function trial({ name, host, port }: Listener): Promise<Finding> {
  const server = createServer()
  const problem = await new Promise<NodeJS.ErrnoException | undefined>((resolve) => {
    server.once('error', resolve).listen(port, host, () => resolve(undefined))
  })
  if (problem === undefined) {
    await new Promise((resolve) => server.close(resolve))
    return ok(name, `${host}:${port} is available`)
  }
  const reasons: Readonly<Record<string, readonly [string, string]>> = {
    EADDRINUSE: [`${host}:${port} is already in use`, 'Stop the program that uses it, or choose another port.'],
    EACCES: [`no permission to listen on ${host}:${port}`, 'Choose a port above 1023.'],
  }
  const [message, advice] = reasons[problem.code ?? ''] ?? [
    `cannot listen on ${host}:${port}: ${problem.message}`,
    'Choose another address or port.',
  ]
  return fail(name, message, advice)
}
