/** Limits that depend on the request: `capacity` or `bands` of an inline rule as a function. */
import { takeHolds } from '../../core/algorithm-traits.js'
import { windowText } from '../../core/band-label.js'
import { type BucketGroup, withBands } from '../../core/bucket-store.js'
import { type CompiledRule, MissingKey, type Plan } from '../../core/decision/snapshot.js'
import { FluxGateError } from '../../core/errors.js'
import type { RequestContext } from '../../core/request-context.js'
import { type Band, maxCapacity, type Rule } from '../../core/rule.js'
import { keptByBands } from '../../rules/schema/call-bands.js'
import type { BandInput } from '../../rules/schema/input.js'
import { parseRule } from '../../rules/schema/parse-rules.js'
import { configInvalid } from '../../validation/config-invalid.js'
import { placeOf } from '../../validation/issues.js'
import { wrongValue } from '../../validation/kind.js'
import { wholeNumber } from '../../validation/kinds.js'

/** A value of an option, or a function of the request. A method, so that functions of the framework's own request type fit. */
export type OfRequest<Native, T> = T | { method(request: Native): T | Promise<T> }['method']

/** The limits of a rule that depend on the request. */
export interface RequestLimits<Native> {
  /** The rule without these limits. */
  readonly rule: Rule
  /** Adds the limits of a request to its context. */
  addTo(context: RequestContext, request: Native): Promise<RequestContext>
  /** Returns a plan that decides with the limits in the context. */
  applyTo(plan: Plan): Plan
}

/** Returns undefined if no limit of the rule depends on the request. */
export function readRequestLimits<Native>(
  document: Readonly<Record<string, unknown>>,
  place: string,
): RequestLimits<Native> | undefined {
  const { capacity, bands } = document
  const limitOf = typeof capacity === 'function' ? capacity : typeof bands === 'function' ? bands : undefined
  if (limitOf === undefined) return undefined
  const read = limitOf === capacity ? capacityReader(document, place) : bandsReader(document, place)
  const rule = read(limitOf === capacity ? 1 : [{ capacity: 1, window: '1s' }])
  checkRule(rule, place, limitOf === capacity ? 'capacity' : 'bands')
  /** The property of a context that contains the limit of its request. */
  const limit = Symbol('fluxgate.limit')
  const withLimit = (group: BucketGroup) =>
    keptByBands((given) => {
      const { bands } = read(given)
      if (takeHolds(bands))
        throw argumentInvalid('bands(request) must not return a band with the algorithm CONCURRENCY.')
      return withBands(group, bands)
    })
  return {
    rule,
    addTo: async (context, request) => ({ ...context, [limit]: await limitOf(request) }),
    applyTo(plan) {
      const { group } = plan.rules.get(rule.id) as CompiledRule
      const groupOf = withLimit(group)
      return {
        ...plan,
        charges(context: RequestContext & { readonly [limit]?: unknown }, permits, costs) {
          const charges = plan.charges(context, permits, costs)
          if (charges instanceof MissingKey) return charges
          return charges.map((charge) => ({ ...charge, group: groupOf(context[limit]) }))
        },
      }
    },
  }
}

type RuleReader = (limit: unknown) => Rule

const capacities = wholeNumber(0, maxCapacity)

/** The label does not contain the capacity, because requests with different capacities share a bucket. */
function capacityReader(document: Readonly<Record<string, unknown>>, place: string): RuleReader {
  return (capacity) => {
    if (capacities.parse(capacity) === undefined)
      throw argumentInvalid(`The result of capacity(request) ${wrongValue(capacity, capacities.allowed)}.`)
    const rule = parseRule({ id: 'limit', ...document, capacity }, place)
    return { ...rule, bands: rule.bands.map((band) => (document.label === undefined ? labelled(band) : band)) }
  }
}

function bandsReader(document: Readonly<Record<string, unknown>>, place: string): RuleReader {
  return (given) => {
    const rule = parseRule({ id: 'limit', ...document, bands: given ?? [] }, place)
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

function checkRule({ bands, consistency }: Rule, place: string, option: string): void {
  const issues = []
  const at = (field: string) => placeOf(place, field)
  if (takeHolds(bands))
    issues.push({ path: at('algorithm'), message: `must not be CONCURRENCY if ${option} is a function` })
  if (consistency === 'LEASED')
    issues.push({
      path: at('consistency'),
      message: `must be EXACT if ${option} is a function; leases have fixed limits`,
    })
  if (issues.length > 0) throw configInvalid('Options of rateLimit', issues)
}

const argumentInvalid = (message: string): FluxGateError => new FluxGateError('FLUXGATE_ARGUMENT_INVALID', message)
