/** Checks whether a configuration works on this machine. Every part is tried as it would be used; nothing is changed. */
import { accessSync, constants, existsSync } from 'node:fs'
import { connect } from 'node:net'
import { dirname } from 'node:path'
import type { Config } from '../../config/config.js'
import { redisAddress } from '../../config/store.js'
import { messageOf } from '../../core/errors.js'
import { originKey } from '../../gateway/upstream/origin.js'
import { chooseReload } from '../../rules/reload/choose-reload.js'
import { isLoopback } from '../../server/request/loopback.js'
import { configuredRules } from '../rules.js'
import { readTlsPair } from '../tls-pair.js'
import { type Check, counted, type Finding, fail, ok, type Part, warn } from './finding.js'
import { ports } from './ports.js'
import { checkRedis } from './redis-checks.js'
import { trialGateway, trialServer } from './trial-start.js'

/** Runs all checks for the given parts. */
export async function runChecks(config: Config, parts: readonly Part[]): Promise<Finding[]> {
  const checks: Check[] = [
    nodeVersion,
    ruleStore,
    bucketStore,
    ports,
    ...(parts.includes('server') ? [serverSecurity] : []),
    ...(parts.includes('gateway') ? [gatewaySecurity, upstreams, accessLog] : []),
    trialStart,
  ]
  const findings: Finding[] = []
  // Run in sequence, so that checks do not disturb each other's measurements.
  for (const check of checks) findings.push(...(await check(config, parts)))
  return findings
}

const nodeVersion: Check = async () => {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const isEnough = major > 20 || (major === 20 && minor >= 19)
  return [isEnough ? ok('node', process.version) : fail('node', process.version, 'Install Node.js 20.19 or later.')]
}

const ruleStore: Check = async (config, parts) => {
  const { type, path } = config.rules
  const rules = configuredRules(config)
  if (rules === undefined) {
    // Routes may define limits themselves; a server alone, and the example of `start`, need a rules file.
    const hasRoutes = parts.includes('gateway') && config.gateway.routes !== undefined
    const isRequired = parts.includes('server') && !hasRoutes
    const report = isRequired ? fail : warn
    return [
      report(
        'rules',
        `rules file not found: ${path}${parts.includes('server') ? '; `fluxgate serve` would not start' : ''}`,
        'Create it with `fluxgate init`, or set rules.path to another file.',
      ),
    ]
  }
  try {
    const sets = await rules.load()
    const count = sets.reduce((sum, set) => sum + set.rules.length, 0)
    const loaded = ok('rules', `${rules.source}: ${counted(sets.length, 'rule set')}, ${counted(count, 'rule')}`)
    const { strategy, pollingInterval, channel } = config.reload
    // Rules outside Redis can be announced through the Redis of the bucket store.
    if (strategy === 'PUBSUB' && type !== 'redis' && config.store.type === 'redis')
      return [loaded, ok('reload', `changes are detected by PUBSUB on channel ${channel}`)]
    const { name } = await chooseReload(strategy, rules)
    const polls = name === 'POLLING' && strategy === 'AUTO'
    if (!polls) return [loaded, ok('reload', `changes are detected by ${name}`)]
    const why = type === 'mongo' ? 'the server has no change streams' : 'the rule store does not announce changes'
    const advice =
      type === 'mongo' ? 'Run MongoDB as a replica set (one node is enough) to detect changes at once.' : ''
    return [
      loaded,
      { ...ok('reload', `${why}; rules are polled every ${pollingInterval / 1_000} s`), ...(advice && { advice }) },
    ]
  } catch (error) {
    return [fail('rules', messageOf(error), `Correct the rules, or the rules settings (type ${type}).`)]
  } finally {
    await rules.close()
  }
}

/** Reports what the commands would reject or warn of when they start. Without loadable rules there is nothing to try. */
const trialStart: Check = async (config, parts) => {
  const rules = configuredRules(config)
  const ruleSets = await rules?.load().catch(() => undefined)
  await rules?.close()
  if (rules !== undefined && ruleSets === undefined) return []
  const hasGateway = parts.includes('gateway') && (config.gateway.routes?.length !== 0 || parts.includes('server'))
  const isExampleOnly = config.gateway.routes === undefined && !parts.includes('server')
  const trials = [
    ...(parts.includes('server') ? [['server', trialServer] as const] : []),
    ...(hasGateway && !isExampleOnly ? [['gateway', trialGateway] as const] : []),
  ]
  const findings: Finding[] = []
  for (const [name, trial] of trials)
    try {
      const warnings = await trial(config, ruleSets ?? [])
      for (const message of warnings)
        findings.push(warn(name, message, 'Correct the setting, unless this is intended.'))
      if (warnings.length === 0) findings.push(ok(name, 'rules and settings fit together'))
    } catch (error) {
      findings.push(fail(name, messageOf(error), 'Correct the configuration; the command would not start.'))
    }
  return findings
}

const accessLog: Check = async ({ gateway: { accessLog: place } }) => {
  if (place === undefined || place === 'stdout' || place === 'stderr') return []
  const target = existsSync(place) ? place : dirname(place)
  try {
    accessSync(target, constants.W_OK)
    return [ok('gateway.accessLog', `${place} is writable`)]
  } catch {
    return [fail('gateway.accessLog', `cannot write ${target}`, 'Create the directory, or change its permissions.')]
  }
}

const bucketStore: Check = async ({ store }) => {
  if (store.type === 'memory')
    return [ok('store', 'buckets are in memory: each process has its own limits, and a restart resets them')]
  return checkRedis(redisAddress(store), store)
}

const minTokenLength = 16

const serverSecurity: Check = async ({ server }) => {
  const { host, adminToken, tlsCert, tlsKey } = server
  const findings: Finding[] = []
  if (adminToken === undefined && !isLoopback(host))
    findings.push(
      fail(
        'server.adminToken',
        `the API would be public on ${host}: no admin token is set`,
        'Set FLUXGATE_ADMIN_TOKEN, or listen on 127.0.0.1.',
      ),
    )
  else if (adminToken === undefined)
    findings.push(ok('server.adminToken', 'not set: the API is reachable from this machine only'))
  else if (adminToken.length < minTokenLength)
    findings.push(
      warn('server.adminToken', 'the token is short enough to guess', 'Generate one: openssl rand -base64 32'),
    )
  else findings.push(ok('server.adminToken', 'set'))
  if (tlsCert !== undefined && tlsKey !== undefined) findings.push(certificate('server.tls', tlsCert, tlsKey))
  else if (!isLoopback(host))
    findings.push(warn('server.tls', 'tokens are sent in plain text', 'Set server.tls, or terminate TLS in a proxy.'))
  return findings
}

const gatewaySecurity: Check = async ({ gateway: { tlsCert, tlsKey } }) =>
  tlsCert === undefined || tlsKey === undefined ? [] : [certificate('gateway.tls', tlsCert, tlsKey)]

function certificate(name: string, cert: string, key: string): Finding {
  try {
    readTlsPair(name, { cert, key })
    return ok(name, 'certificate and key match')
  } catch (error) {
    return fail(name, messageOf(error), 'Set cert and key to readable PEM files that belong together.')
  }
}

const connectMs = 2_000

const upstreams: Check = async ({ gateway }, parts) => {
  if ((gateway.routes ?? []).length === 0) {
    const advice = 'Add them to fluxgate.yaml under gateway.routes.'
    const message = 'no routes are configured; `fluxgate gateway` would not start'
    if (!parts.includes('server')) return [fail('gateway.routes', message, advice)]
    const instead =
      gateway.routes === undefined ? 'proxies to a built-in example' : 'responds to every request with 404'
    return [warn('gateway.routes', `${message}, and the gateway of \`fluxgate start\` ${instead}`, advice)]
  }
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
        socket.once('timeout', () => done(new Error('connection timed out')))
        socket.once('error', done)
      })
      return problem === undefined
        ? ok('gateway.routes', `${address} accepts connections`)
        : warn(
            'gateway.routes',
            `cannot connect to ${address} of route ${id}: ${problem.message}`,
            'Start the upstream; until then the gateway responds with 502.',
          )
    }),
  )
}
