/** Whether a configuration can work here: every part is tried as it would be used, and nothing is changed. */
import { connect, createServer } from 'node:net'
import type { Config } from '../../config/config.js'
import { redisAddress } from '../../config/store.js'
import { messageOf } from '../../core/errors.js'
import { originKey } from '../../gateway/upstream/origin.js'
import { chooseReload } from '../../rules/reload/choose-reload.js'
import { isLoopback } from '../../server/request/loopback.js'
import { configuredRules } from '../rules.js'
import { readTlsPair } from '../tls-pair.js'
import { examineRedis } from './redis-findings.js'

export interface Finding {
  /** What was looked at. */
  readonly name: string
  /** `warn`: it works, but perhaps not as it was meant. */
  readonly status: 'ok' | 'warn' | 'fail'
  readonly message: string
  /** What to do about it. */
  readonly advice?: string
}

type Part = 'server' | 'gateway'
type Examination = (config: Config, parts: readonly Part[]) => Promise<readonly Finding[]>

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`

const ok = (name: string, message: string): Finding => ({ name, status: 'ok', message })
const warn = (name: string, message: string, advice: string): Finding => ({ name, status: 'warn', message, advice })
const fail = (name: string, message: string, advice: string): Finding => ({ name, status: 'fail', message, advice })

/** `parts`: what is going to run. */
export async function examine(config: Config, parts: readonly Part[]): Promise<Finding[]> {
  const examinations: Examination[] = [
    nodeVersion,
    ruleStore,
    bucketStore,
    ...(parts.includes('server') ? [serverPort, serverSecurity] : []),
    ...(parts.includes('gateway') ? [gatewayPort, gatewaySecurity, metricsPort, upstreams] : []),
  ]
  const findings: Finding[] = []
  // One after the other: what one of them does must not disturb what another measures.
  for (const examination of examinations) findings.push(...(await examination(config, parts)))
  return findings
}

const nodeVersion: Examination = async () => {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const isEnough = major > 20 || (major === 20 && minor >= 19)
  return [isEnough ? ok('node', process.version) : fail('node', process.version, 'Install Node.js 20.19 or later.')]
}

const ruleStore: Examination = async (config, parts) => {
  const { type, path } = config.rules
  const rules = configuredRules(config)
  if (rules === undefined) {
    // Routes may say by themselves what is limited; a server alone, and the example of `start`, have nothing else.
    const hasRoutes = parts.includes('gateway') && config.gateway.routes !== undefined
    const isNeeded = parts.includes('server') && !hasRoutes
    const found = isNeeded ? fail : warn
    return [found('rules', `there is no rules file ${path}`, 'Create it, or name another: rules.path.')]
  }
  try {
    const sets = await rules.load()
    const count = sets.reduce((sum, set) => sum + set.rules.length, 0)
    const loaded = ok('rules', `${rules.source}: ${counted(sets.length, 'rule set')}, ${counted(count, 'rule')}`)
    const { strategy, pollingInterval, channel } = config.reload
    // What is not announced where it is kept may be announced by the Redis of the buckets.
    if (strategy === 'PUBSUB' && type !== 'redis' && config.store.type === 'redis')
      return [loaded, ok('reload', `changes are noticed by PUBSUB, on the channel ${channel}`)]
    const { name } = await chooseReload(strategy, rules)
    const polls = name === 'POLLING' && strategy === 'AUTO'
    if (!polls) return [loaded, ok('reload', `changes are noticed by ${name}`)]
    const why = type === 'mongo' ? 'the server has no change streams' : 'changes are not announced here'
    const advice = type === 'mongo' ? 'Run MongoDB as a replica set, if of one node, to hear of changes at once.' : ''
    return [
      loaded,
      { ...ok('reload', `${why}; rules are read every ${pollingInterval / 1_000} s`), ...(advice && { advice }) },
    ]
  } catch (error) {
    return [fail('rules', messageOf(error), `Correct them, or where they are kept: rules (type ${type}).`)]
  } finally {
    await rules.close()
  }
}

const bucketStore: Examination = async ({ store }) => {
  if (store.type === 'memory')
    return [ok('store', 'buckets are in memory: limits are those of one process, and begin anew with it')]
  return examineRedis(redisAddress(store), store)
}

const serverPort: Examination = async ({ server }) => [await port('server.port', server.host, server.port)]
const gatewayPort: Examination = async ({ gateway }) => [await port('gateway.port', gateway.host, gateway.port)]

const metricsPort: Examination = async ({ gateway: { metricsHost, metricsPort }, server: { adminToken } }) => {
  if (metricsPort === undefined) return []
  if (adminToken !== undefined || isLoopback(metricsHost))
    return [await port('gateway.metricsPort', metricsHost, metricsPort)]
  const message = `metrics would be open to everybody at ${metricsHost}`
  return [fail('gateway.metricsPort', message, 'Set FLUXGATE_ADMIN_TOKEN, or gateway.metricsHost: 127.0.0.1.')]
}

async function port(name: string, host: string, number: number): Promise<Finding> {
  const trial = createServer()
  const problem = await new Promise<NodeJS.ErrnoException | undefined>((resolve) => {
    trial.once('error', resolve).listen(number, host, () => resolve(undefined))
  })
  if (problem === undefined) {
    await new Promise((resolve) => trial.close(resolve))
    return ok(name, `${host}:${number} can be listened on`)
  }
  const reasons: Readonly<Record<string, readonly [string, string]>> = {
    EADDRINUSE: [`${host}:${number} is taken`, 'Stop the program that has it, or choose another port.'],
    EACCES: [`${host}:${number} needs rights that this user does not have`, 'Choose a port above 1023.'],
  }
  const [message, advice] = reasons[problem.code ?? ''] ?? [`${host}:${number}: ${problem.message}`, 'Choose another.']
  return fail(name, message, advice)
}

const weakToken = 16

const serverSecurity: Examination = async ({ server }) => {
  const { host, adminToken, tlsCert, tlsKey } = server
  const findings: Finding[] = []
  if (adminToken === undefined && !isLoopback(host))
    findings.push(
      fail(
        'server.adminToken',
        `the API would be open to everybody at ${host}`,
        'Set FLUXGATE_ADMIN_TOKEN, or listen on 127.0.0.1.',
      ),
    )
  else if (adminToken === undefined) findings.push(ok('server.adminToken', 'none: the API is for this machine only'))
  else if (adminToken.length < weakToken)
    findings.push(
      warn('server.adminToken', 'it is short enough to be guessed', 'Take a random one: openssl rand -base64 32'),
    )
  else findings.push(ok('server.adminToken', 'set'))
  if (tlsCert !== undefined && tlsKey !== undefined) findings.push(certificate('server.tls', tlsCert, tlsKey))
  else if (!isLoopback(host))
    findings.push(
      warn('server.tls', 'tokens travel in plain text', 'Name a certificate: server.tls, or end TLS before it.'),
    )
  return findings
}

const gatewaySecurity: Examination = async ({ gateway: { tlsCert, tlsKey } }) =>
  tlsCert === undefined || tlsKey === undefined ? [] : [certificate('gateway.tls', tlsCert, tlsKey)]

function certificate(name: string, cert: string, key: string): Finding {
  try {
    readTlsPair(name, { cert, key })
    return ok(name, 'certificate and key fit together')
  } catch (error) {
    return fail(name, messageOf(error), 'Name a certificate and its key, files in PEM that can be read.')
  }
}

const connectMs = 2_000

const upstreams: Examination = async ({ gateway }, parts) => {
  if (!parts.includes('server') && (gateway.routes ?? []).length === 0)
    return [fail('gateway.routes', 'there are none', 'Name them in fluxgate.yaml, under gateway.routes.')]
  const origins = new Map((gateway.routes ?? []).map(({ id, origin }) => [originKey(origin), { id, origin }]))
  return Promise.all(
    [...origins].map(async ([address, { id, origin }]) => {
      const problem = await new Promise<Error | undefined>((resolve) => {
        const socket = connect({ host: origin.hostname, port: origin.port, timeout: connectMs })
        const done = (error?: Error): void => {
          socket.destroy()
          resolve(error)
        }
        socket.once('connect', () => done())
        socket.once('timeout', () => done(new Error('no answer')))
        socket.once('error', done)
      })
      return problem === undefined
        ? ok('gateway.routes', `${address} answers`)
        : warn(
            'gateway.routes',
            `${address} of route ${id}: ${problem.message}`,
            'Start it; until then the gateway answers 502.',
          )
    }),
  )
}
