/** What `start`, `serve` and `gateway` say while they run: lines for people, or one JSON document per line. */
import type { DemoHints } from '../../program/demo/hints.js'
import type { RoutesReloaded } from '../../program/gateway/reload.js'
import type { Logger } from '../../program/log.js'
import { paintFor, print, printData } from '../output/output.js'

export interface Started {
  /** Of the gateway; null where there is none. */
  readonly url: string | null
  /** Of the server; null where there is none. */
  readonly api: string | null
  /** Of a gateway's metrics and health, where they have a port of their own. */
  readonly metrics: string | null
  /** Whether the API asks for one. */
  readonly needsToken: boolean
  /** Null where only routes say what is limited. */
  readonly rules: string | null
  readonly rulesType: 'file' | 'redis' | 'mongo'
  readonly ruleCount: number
  /** Null where the routes are those of the example. */
  readonly config: string | null
  readonly routeCount: number
  readonly workers: number
  readonly warnings: readonly string[]
  readonly hints: DemoHints | null
}

interface Failure {
  readonly message: string
  readonly errors: readonly { path: string; message: string }[]
}

export interface Reloaded {
  readonly rules: string
  readonly ruleCount: number
  readonly changed: boolean
  readonly error: Failure | null
}

export interface Rerouted extends Omit<RoutesReloaded, 'error'> {
  readonly config: string
  readonly error: Failure | null
}

export interface StartReport {
  started(started: Started): void
  reloaded(reloaded: Reloaded): void
  rerouted(rerouted: Rerouted): void
  trouble(text: string): void
  stopping(): void
}

/** The same, and whatever is wrong is in the log, in the form that the rest of it has. */
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
      if (error !== null) log.error(`${rules} is not taken over, the old rules stay: ${oneLine(error)}`)
      report.reloaded(reloaded)
    },
    rerouted(rerouted) {
      const { config, needsRestart, error } = rerouted
      if (error !== null) log.error(`${config} is not taken over, the old routes stay: ${oneLine(error)}`)
      if (needsRestart) log.warn(`${config} has other changes too, which hold after a restart`)
      report.rerouted(rerouted)
    },
    trouble(text) {
      log.warn(text)
      report.trouble(text)
    },
  }
}

const jsonReport: StartReport = {
  started: ({ hints: _, needsToken: __, rulesType: ___, ...started }) => printData({ event: 'started', ...started }),
  reloaded: ({ error, ...reloaded }) => printData({ event: 'reloaded', ...reloaded, error: error?.message ?? null }),
  rerouted: ({ error, ...rerouted }) => printData({ event: 'rerouted', ...rerouted, error: error?.message ?? null }),
  trouble: (text) => printData({ event: 'trouble', text }),
  stopping: () => printData({ event: 'stopping' }),
}

/** What is wrong is left to the log, which people see on the same terminal. */
const textReport: StartReport = {
  started({ url, api, metrics, needsToken, rules, rulesType, ruleCount, config, routeCount, workers, hints }) {
    const paint = paintFor(process.stdout)
    const shared = workers > 1 ? ` with ${workers} workers` : ''
    if (url !== null) print(`FluxGate listens on ${paint('bold', url)}${shared}`)
    if (api !== null && url === null) print(`FluxGate's API listens on ${paint('bold', api)}${shared}`)
    if (api !== null && url !== null) print(`Its API listens on ${paint('bold', api)}`)
    if (api !== null) print(`Status page: ${paint('bold', `${api}/console`)}. What can be asked: ${api}/openapi.json`)
    if (metrics !== null) print(`Its metrics and health: ${paint('bold', `${metrics}/metrics`)}, /health/ready`)
    const change =
      rulesType === 'file' ? 'Edit and save it: the new limits hold at once.' : 'Changes are taken over while it runs.'
    if (rules !== null) print(`Rules: ${paint('bold', rules)}, ${counted(ruleCount, 'rule')}. ${change}`)
    if (config !== null)
      print(
        `Routes: ${paint('bold', config)}, ${counted(routeCount, 'route')}. Edit and save it: the new routes hold at once.`,
      )
    else if (url !== null) print(`Routes: ${counted(routeCount, 'route')} to an example service in this process.`)
    const lines = [...(hints !== null && url !== null ? tryLines(hints, url) : []), ...apiLines(api, needsToken, hints)]
    if (lines.length > 0) print('\nTry:')
    for (const [command, meaning] of lines) print(`  ${paint('cyan', command)}\n      ${meaning}`)
    print('\nCtrl-C stops it.')
  },
  reloaded({ rules, ruleCount, changed, error }) {
    if (error !== null) return
    if (changed) print(`${time()} ${rules} reloaded: ${counted(ruleCount, 'rule')} in force`)
    else print(`${time()} ${rules} read again: nothing changed`)
  },
  rerouted({ config, routeCount, error }) {
    if (error === null) print(`${time()} ${config} reloaded: ${counted(routeCount, 'route')} in force`)
  },
  trouble: () => {},
  stopping: () => print(`${time()} stopping: what is held is finished; again to stop at once`),
}

/** `[1-4]` is curl's own way to ask four times. */
function tryLines({ allowed = '/', refused, held }: DemoHints, url: string): [string, string][] {
  const lines: [string, string][] = [[`curl -i ${url}${allowed}`, 'allowed: 200, and headers that say what is left']]
  if (refused !== undefined)
    lines.push([
      String.raw`curl -s -w "%{http_code}\n" "${url}${refused.path}?[1-${refused.calls}]"`,
      `the last one is refused: 429, and when to come back`,
    ])
  if (held !== undefined)
    lines.push([
      String.raw`curl -s -w "%{time_total} s\n" "${url}${held}?[1-3]"`,
      'allowed, but held until their turn: a leaky bucket spaces them',
    ])
  return lines
}

/** Lines for the API, with the token where it asks for one. */
function apiLines(api: string | null, needsToken: boolean, hints: DemoHints | null): [string, string][] {
  if (api === null) return []
  const token = needsToken ? '-H "Authorization: Bearer $FLUXGATE_ADMIN_TOKEN" ' : ''
  const body = JSON.stringify({ clientIp: '203.0.113.7', method: 'GET', path: hints?.allowed ?? '/' })
  return [
    [
      `curl -s ${token}-H "Content-Type: application/json" -d '${body}' ${api}/api/ratelimit/check`,
      'a decision as JSON, for any language',
    ],
    [`curl -s ${token}${api}/metrics`, 'counts and durations, for Prometheus'],
  ]
}

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`

const maxShown = 3

function oneLine({ message, errors }: Failure): string {
  if (errors.length === 0) return message.replaceAll(/\s+/g, ' ')
  const shown = errors.slice(0, maxShown).map((mistake) => `${mistake.path}: ${mistake.message}`)
  const more = errors.length > maxShown ? [`and ${errors.length - maxShown} more`] : []
  return [...shown, ...more].join(' | ')
}

const time = (): string => new Date().toTimeString().slice(0, 8)
