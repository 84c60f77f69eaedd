/** Limits that depend on the request: `capacity` or `bands` of an inline rule as a function. */
import { takeHolds } from '../../core/algorithm-traits.js'
import { windowText } from '../../core/band-label.js'
import { type BucketGroup, withBands } from '../../core/bucket-store.js'
import { MissingKey, type Plan, type Snapshot } from '../../core/decision/snapshot.js'
import { FluxGateError } from '../../core/errors.js'
import type { RequestContext } from '../../core/request-context.js'
import { type Band, maxCapacity, type Rule } from '../../core/rule.js'
import type { GuardOptions } from '../../http/guard-options.js'
import { keptByBands } from '../../rules/schema/call-bands.js'
import type { BandInput } from '../../rules/schema/input.js'
import { parseRule } from '../../rules/schema/parse-rules.js'
import { configInvalid } from '../../validation/config-invalid.js'
import { wrongValue } from '../../validation/kind.js'
import { wholeNumber } from '../../validation/kinds.js'

/** A value of an option, or a function of the request. A method, so that functions of the framework's own request type fit. */
export type OfRequest<Native, T> = T | { method(request: Native): T | Promise<T> }['method']

/** An inline rule whose limits depend on the request. */
export interface RequestLimits<Native> {
  /** The rule without these limits. */
  readonly rule: Rule
  /** Adds the limits of a request to its context, as a `customize` hook that runs after the one of the options. */
  customize(context: RequestContext, request: Native): Promise<RequestContext>
  /** Returns a snapshot that decides with the limits in the context. */
  applyTo(snapshot: Snapshot): Snapshot
}

/** The property of a context that contains the bands of its request. */
const limits = Symbol('fluxgate.limits')

type LimitedContext = RequestContext & { readonly [limits]?: unknown }

/** Returns undefined if no limit of the rule depends on the request. */
export function readRequestLimits<Native>(
  document: Readonly<Record<string, unknown>>,
  customize: GuardOptions<Native>['customize'],
): RequestLimits<Native> | undefined {
  const { capacity, bands } = document
  const limitOf = typeof capacity === 'function' ? capacity : typeof bands === 'function' ? bands : undefined
  if (limitOf === undefined) return undefined
  const read = limitOf === capacity ? capacityReader(document) : bandsReader(document)
  const rule = read(limitOf === capacity ? 1 : [{ capacity: 1, window: '1s' }])
  checkRule(rule, limitOf === capacity ? 'capacity' : 'bands')
  const groupOf = (group: BucketGroup) =>
    keptByBands((limit) => {
      const { bands } = read(limit)
      if (takeHolds(bands))
        throw argumentInvalid('bands(request) must not return a band with the algorithm CONCURRENCY.')
      return withBands(group, bands)
    })
  return {
    rule,
    async customize(context, request) {
      const customized = (await customize?.(context, request)) ?? context
      return { ...customized, [limits]: await limitOf(request) }
    },
    applyTo: ({ plans }) => {
      const limited = Array.from(plans, ([id, plan]) => [id, withRequestLimits(plan, groupOf)] as const)
      return { plans: new Map(limited), defaultPlan: limited[0]?.[1] }
    },
  }
}

type RuleReader = (limit: unknown) => Rule

const capacities = wholeNumber(0, maxCapacity)

/** The label does not contain the capacity, because requests with different capacities share a bucket. */
function capacityReader(document: Readonly<Record<string, unknown>>): RuleReader {
  return (capacity) => {
    if (capacities.parse(capacity) === undefined)
      throw argumentInvalid(`The result of capacity(request) ${wrongValue(capacity, capacities.allowed)}.`)
    const rule = parseRule({ id: 'limit', ...document, capacity })
    return { ...rule, bands: rule.bands.map((band) => (document.label === undefined ? labelled(band) : band)) }
  }
}

function bandsReader(document: Readonly<Record<string, unknown>>): RuleReader {
  return (given) => {
    const rule = parseRule({ id: 'limit', ...document, bands: given ?? [] })
    const items = given as readonly BandInput[]
    const bands = rule.bands.map((band, index) => (items[index]?.label === undefined ? labelled(band) : band))
    const labels = bands.map(({ label }) => label)
    const repeated = labels.find((label, index) => labels.indexOf(label) !== index)
    if (repeated !== undefined)
      throw argumentInvalid(`bands(request) must return bands with different labels; received two with ${repeated}.`)
    return { ...rule, bands }
  }
}

const labelled = (band: Band): Band => ({ ...band, label: `per-${windowText(band)}` })

function checkRule({ bands, consistency }: Rule, option: string): void {
  const issues = []
  if (takeHolds(bands))
    issues.push({ path: 'algorithm', message: `must not be CONCURRENCY if ${option} is a function` })
  if (consistency === 'LEASED')
    issues.push({ path: 'consistency', message: `must be EXACT if ${option} is a function; leases have fixed limits` })
  if (issues.length > 0) throw configInvalid('Options of rateLimit', issues)
}

/** The charges of a rule, with the bands in the context. */
function withRequestLimits(plan: Plan, groupOf: (group: BucketGroup) => (limit: unknown) => BucketGroup): Plan {
  const groups = new Map<BucketGroup, (limit: unknown) => BucketGroup>()
  return {
    ...plan,
    charges(context: LimitedContext, permits, costs) {
      const charges = plan.charges(context, permits, costs)
      if (charges instanceof MissingKey) return charges
      return charges.map((charge) => {
        const { group } = charge
        const withLimit = groups.get(group) ?? groupOf(group)
        groups.set(group, withLimit)
        return { ...charge, group: withLimit(context[limits]) }
      })
    },
  }
}

const argumentInvalid = (message: string): FluxGateError => new FluxGateError('FLUXGATE_ARGUMENT_INVALID', message)
