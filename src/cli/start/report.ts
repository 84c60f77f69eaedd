/** Output of `start`, `serve` and `gateway` while they run: text, or one JSON document per line. */
import type { DemoExamples } from '../../program/demo/examples.js'
import type { RoutesReloaded } from '../../program/gateway/reload.js'
import type { Logger } from '../../program/log.js'
import { describeIssue } from '../../validation/issues.js'
import { paintFor, print, printData } from '../output/output.js'

interface Started {
  /** URL of the gateway; null if none runs. */
  readonly url: string | null
  /** URL of the API; null if none runs. */
  readonly api: string | null
  /** URL of the gateway's metrics and health, if they have their own port. */
  readonly metrics: string | null
  /** URL of Envoy's rate limit service; null if none runs. */
  readonly grpc: string | null
  /** True if the API requires a token. */
  readonly needsToken: boolean
  /** Null if only the routes define limits. */
  readonly rules: string | null
  readonly rulesType: 'file' | 'redis' | 'mongo'
  readonly ruleCount: number
  /** The configuration file; null if the example routes are used. */
  readonly config: string | null
  readonly routeCount: number
  readonly workers: number
  readonly warnings: readonly string[]
  readonly hints: DemoExamples | null
}

interface Failure {
  readonly message: string
  readonly errors: readonly { path: string; message: string }[]
}

interface Reloaded {
  readonly rules: string
  readonly ruleCount: number
  readonly changed: boolean
  readonly error: Failure | null
}

interface Rerouted extends Omit<RoutesReloaded, 'error'> {
  readonly config: string
  readonly error: Failure | null
}

export interface StartReport {
  started(started: Started): void
  reloaded(reloaded: Reloaded): void
  rerouted(rerouted: Rerouted): void
  warning(text: string): void
  stopping(): void
}

/** Prints reports as text or JSON, and logs warnings and errors. */
export function reportWith(log: Logger, { json }: { readonly json?: true }): StartReport {
  const report = json ? jsonReport : textReport
  return {
    ...report,
    started(started) {
      for (const warning of started.warnings) log.warn(warning)
      report.started(started)
    },
    reloaded(reloaded) {
      const { rules, error } = reloaded
      if (error !== null) log.error(`failed to reload ${rules}, the current rules stay in effect: ${oneLine(error)}`)
      report.reloaded(reloaded)
    },
    rerouted(rerouted) {
      const { config, needsRestart, error } = rerouted
      if (error !== null) log.error(`failed to reload ${config}, the current routes stay in effect: ${oneLine(error)}`)
      if (needsRestart) log.warn(`${config} also changes settings that take effect only after a restart`)
      report.rerouted(rerouted)
    },
    warning(text) {
      log.warn(text)
      report.warning(text)
    },
  }
}

const jsonReport: StartReport = {
  started: ({ hints: _, needsToken: __, rulesType: ___, grpc, ...started }) =>
    printData({ event: 'started', ...started, ...(grpc !== null && { grpc }) }),
  reloaded: ({ error, ...reloaded }) => printData({ event: 'reloaded', ...reloaded, error: error?.message ?? null }),
  rerouted: ({ error, ...rerouted }) => printData({ event: 'rerouted', ...rerouted, error: error?.message ?? null }),
  warning: (text) => printData({ event: 'warning', text }),
  stopping: () => printData({ event: 'stopping' }),
}

/** Errors are not printed here: the log shows them on the same terminal. */
const textReport: StartReport = {
  started({ url, api, metrics, grpc, needsToken, rules, rulesType, ruleCount, config, routeCount, workers, hints }) {
    const paint = paintFor(process.stdout)
    const shared = workers > 1 ? ` with ${workers} workers` : ''
    if (url !== null) print(`FluxGate listens on ${paint('bold', url)}${shared}`)
    if (api !== null && url === null) print(`FluxGate API listens on ${paint('bold', api)}${shared}`)
    if (api !== null && url !== null) print(`The API listens on ${paint('bold', api)}`)
    if (api !== null) print(`Console: ${paint('bold', `${api}/console`)}. API description: ${api}/openapi.json`)
    if (metrics !== null) print(`Metrics and health: ${paint('bold', `${metrics}/metrics`)}, /health/ready`)
    if (grpc !== null) print(`Envoy rate limit service: ${paint('bold', grpc)}`)
    const change = rulesType === 'file' ? 'Saved edits apply immediately.' : 'Changes apply while it runs.'
    if (rules !== null) print(`Rules: ${paint('bold', rules)}, ${counted(ruleCount, 'rule')}. ${change}`)
    if (config !== null)
      print(`Routes: ${paint('bold', config)}, ${counted(routeCount, 'route')}. Saved edits apply immediately.`)
    else if (url !== null) print(`Routes: ${counted(routeCount, 'route')} to an example service in this process.`)
    const lines = [...(hints !== null && url !== null ? tryLines(hints, url) : []), ...apiLines(api, needsToken, hints)]
    if (lines.length > 0) print('\nTry:')
    for (const [command, meaning] of lines) print(`  ${paint('cyan', command)}\n      ${meaning}`)
    print('\nPress Ctrl-C to stop.')
  },
  reloaded({ rules, ruleCount, changed, error }) {
    if (error !== null) return
    if (changed) print(`${time()} ${rules} reloaded: ${counted(ruleCount, 'rule')} active`)
    else print(`${time()} ${rules} reloaded: no changes`)
  },
  rerouted({ config, routeCount, error }) {
    if (error === null) print(`${time()} ${config} reloaded: ${counted(routeCount, 'route')} active`)
  },
  warning: () => {},
  stopping: () => print(`${time()} stopping: finishing requests in flight; press Ctrl-C again to exit at once`),
}

/** `[1-4]` makes curl send four requests. */
function tryLines({ allowed = '/', rejected, held }: DemoExamples, url: string): [string, string][] {
  const lines: [string, string][] = [[`curl -i ${url}${allowed}`, 'allowed: 200 with rate limit headers']]
  if (rejected !== undefined)
    lines.push([
      String.raw`curl -s -w "%{http_code}\n" "${url}${rejected.path}?[1-${rejected.calls}]"`,
      'the last one is rejected: 429 with Retry-After',
    ])
  if (held !== undefined)
    lines.push([
      String.raw`curl -s -w "%{time_total} s\n" "${url}${held}?[1-3]"`,
      'allowed but delayed: a leaky bucket spaces the requests',
    ])
  return lines
}

/** Example requests to the API, with the token header if one is required. */
function apiLines(api: string | null, needsToken: boolean, hints: DemoExamples | null): [string, string][] {
  if (api === null) return []
  const token = needsToken ? '-H "Authorization: Bearer $FLUXGATE_ADMIN_TOKEN" ' : ''
  const body = JSON.stringify({ clientIp: '203.0.113.7', method: 'GET', path: hints?.allowed ?? '/' })
  return [
    [
      `curl -s ${token}-H "Content-Type: application/json" -d '${body}' ${api}/api/ratelimit/check`,
      'a decision as JSON',
    ],
    [`curl -s ${token}${api}/metrics`, 'metrics for Prometheus'],
  ]
}

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`

const maxShown = 3

function oneLine({ message, errors }: Failure): string {
  if (errors.length === 0) return message.replaceAll(/\s+/g, ' ')
  const shown = errors.slice(0, maxShown).map(describeIssue)
  const more = errors.length > maxShown ? [`and ${errors.length - maxShown} more`] : []
  return [...shown, ...more].join(' | ')
}

const time = (): string => new Date().toTimeString().slice(0, 8)
