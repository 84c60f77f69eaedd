/** Bands of a single call: limits that depend on the request, on the buckets of a rule. */
import type { Band } from '../../core/rule.js'
import { isObject, itemsOf, openFields } from '../../validation/fields.js'
import { noIssues, rulesInvalid, type ValidationIssues } from '../../validation/issues.js'
import { wrongValue } from '../../validation/kind.js'
import { labelBands } from './fields/band-labels.js'
import { algorithmKind, bandKinds, type DraftBand, maxBands, readBand } from './fields/band-schema.js'
import type { CallBandInput } from './input.js'

const windowNames = ['window', 'windowMs', 'windowSeconds', 'refillSeconds', 'calendar'] as const

/**
 * Validates the bands of one call. A band belongs to the band of the rule with its label, or without a label to the one at the
 * same position. It uses the same bucket, and takes the window and the algorithm from there unless it sets its own.
 *
 * @throws FluxGateError `FLUXGATE_RULES_INVALID`, with every issue in `errors`.
 */
export function parseCallBands(value: unknown, ruleBands: readonly Band[]): readonly Band[] {
  const issues = noIssues()
  const items = itemsOf(value) ?? []
  if (items.length === 0 || items.length > maxBands)
    issues.add('bands', wrongValue(value, `a list of 1 to ${maxBands} bands`))
  const drafts = items.map((item, index) => readCallBand(item, index, ruleBands, issues))
  const bands = labelBands(
    drafts.filter((draft) => draft !== undefined),
    'bands',
    issues,
  )
  if (issues.count > 0) throw rulesInvalid('The bands of the call', issues)
  return bands
}

function readCallBand(
  item: unknown,
  index: number,
  ruleBands: readonly Band[],
  issues: ValidationIssues,
): DraftBand | undefined {
  const given = isObject(item) ? (item as Partial<CallBandInput>) : {}
  const own = given.label === undefined ? ruleBands[index] : ruleBands.find(({ label }) => label === given.label)
  const lacksWindow = windowNames.every((name) => !Object.hasOwn(given, name))
  if (lacksWindow && own === undefined && given.label !== undefined) {
    const labels = ruleBands.map(({ label }) => label).join(', ')
    const allowed = `the label of a band of the rule (${labels}), unless the band has a window`
    issues.add(`bands[${index}].label`, wrongValue(given.label, allowed))
    return undefined
  }
  const inheritsWindow = lacksWindow && own !== undefined
  const document = !isObject(item) || !inheritsWindow ? item : { ...item, windowMs: own.windowTicks / 1_000 }
  const fields = openFields(document, `bands[${index}]`, bandKinds, 'a band: { capacity, … }', issues)
  if (fields === undefined) return undefined
  const algorithm = fields.has('algorithm')
    ? fields.as({ algorithm: algorithmKind }).read('algorithm')
    : (own?.algorithm ?? ruleBands[0]?.algorithm)
  const draft = readBand(fields, algorithm)
  const refill = fields.has('refill') || algorithm !== own?.algorithm ? draft.refill : own?.refill
  const band = { ...draft, refill, label: draft.label ?? own?.label }
  return inheritsWindow ? { ...own, ...band } : band
}

/** The number of different lists of bands whose result is kept. */
const maxKept = 1_000

/** Returns what `make` returns for the same bands, which callers usually create again for every request. */
export function keptByBands<T>(make: (bands: unknown) => T): (bands: unknown) => T {
  const kept = new Map<string, T>()
  return (bands) => {
    const text = JSON.stringify(bands) ?? ''
    const known = kept.get(text)
    if (known !== undefined) return known
    const made = make(bands)
    if (kept.size >= maxKept) kept.delete(kept.keys().next().value as string)
    kept.set(text, made)
    return made
  }
}
