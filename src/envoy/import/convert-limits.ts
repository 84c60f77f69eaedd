/** Converts the configuration of envoyproxy/ratelimit to rules that decide the same. */
import { joinKeyParts } from '../../core/keys/key-parts.js'
import { maxCapacity } from '../../core/rule.js'
import type { RuleInput, RuleSetInput } from '../../rules/schema/input.js'
import { keysAttribute } from '../ratelimit/descriptor-check.js'
import { windowByUnit } from '../ratelimit/units.js'
import type { DescriptorNode, LimitDomain } from './read-limits.js'

/** The result for descriptors that reach the end of a path. */
interface Outcome {
  readonly path: readonly DescriptorNode[]
  /** OPEN: no limit, because the configuration has none there. UNLIMITED: it says so. */
  readonly kind: 'LIMIT' | 'UNLIMITED' | 'OPEN'
}

/**
 * The search of envoyproxy/ratelimit takes the child with the value of the entry, otherwise the child without a value, and never
 * backtracks. A rule set with `strategy: first` does the same if the rules of descriptors with the same keys are in the order of
 * this search, and if paths that end without a limit have a rule too: one that no client can exceed.
 */
export function convertLimits({ domain, descriptors }: LimitDomain): RuleSetInput {
  const ids = new Set<string>()
  const named = new Map<string, string[]>()
  const drafts: { readonly rule: RuleInput; readonly replaces: readonly string[] }[] = []
  for (const keys of shapesOf(descriptors, [])) {
    const outcomes = reachable(outcomesOf(descriptors, keys, []))
    for (const [index, outcome] of outcomes.entries()) {
      const leaf = outcome.path.at(-1) as DescriptorNode
      const isOwn = outcome.kind !== 'OPEN'
      const id = uniqueId(outcome, ids)
      if (isOwn && leaf.name !== undefined) named.set(leaf.name, [...(named.get(leaf.name) ?? []), id])
      const priority = outcomes.length - 1 - index
      drafts.push({
        rule: ruleOf(outcome, { id, keys, ...(priority > 0 && { priority }) }),
        replaces: isOwn ? leaf.replaces : [],
      })
    }
  }
  const rules = drafts.map(({ rule, replaces }) => {
    const replaced = [...new Set(replaces.flatMap((name) => named.get(name) ?? []))]
    return replaced.length === 0 ? rule : { ...rule, replaces: replaced }
  })
  return { id: domain, strategy: 'first', rules }
}

/** The lists of keys of descriptors that have a limit. */
function shapesOf(nodes: readonly DescriptorNode[], keys: readonly string[]): readonly (readonly string[])[] {
  const shapes = new Map<string, readonly string[]>()
  for (const node of nodes) {
    const own = [...keys, node.key]
    if (node.limit !== undefined) shapes.set(JSON.stringify(own), own)
    for (const shape of shapesOf(node.children, own)) shapes.set(JSON.stringify(shape), shape)
  }
  return [...shapes.values()]
}

/** The outcomes of descriptors with these keys, in the order of the search. */
function outcomesOf(
  nodes: readonly DescriptorNode[],
  keys: readonly string[],
  path: readonly DescriptorNode[],
): readonly Outcome[] {
  const leaf = path.at(-1)
  if (leaf !== undefined && path.length === keys.length) {
    if (leaf.limit === undefined) return [{ path, kind: 'OPEN' }]
    if (leaf.limit === 'UNLIMITED') return [{ path, kind: 'UNLIMITED' }]
    const limit: Outcome = { path, kind: 'LIMIT' }
    // A shadow rule does not end the search of `strategy: first`.
    return leaf.isShadow ? [limit, { path, kind: 'OPEN' }] : [limit]
  }
  const matching = nodes.filter(({ key }) => key === keys[path.length])
  const withValue = matching.filter(({ value }) => value !== undefined)
  const others = matching.filter(({ value }) => value === undefined)
  const found = [...withValue, ...others].flatMap((node) => outcomesOf(node.children, keys, [...path, node]))
  return others.length > 0 || path.length === 0 ? found : [...found, { path, kind: 'OPEN' }]
}

/** Removes rules without a limit that no later rule needs. */
const reachable = (outcomes: readonly Outcome[]): readonly Outcome[] =>
  outcomes.filter(
    ({ kind, path }, index) =>
      kind !== 'OPEN' || outcomes.slice(index + 1).some((later) => later.kind !== 'OPEN' && overlap(path, later.path)),
  )

const overlap = (one: readonly DescriptorNode[], other: readonly DescriptorNode[]): boolean =>
  one.every(({ value }, i) => {
    const others = other[i]?.value
    return value === undefined || others === undefined || value === others
  })

function uniqueId({ path, kind }: Outcome, ids: Set<string>): string {
  const parts = path.map(({ key, value }) => (value === undefined ? key : `${key}:${value}`))
  const text = `${parts.join('.')}${kind === 'OPEN' ? '.others' : ''}`
  const base = text.replaceAll(/[^A-Za-z0-9._:-]+/g, '-').slice(0, 110)
  let id = base
  for (let count = 2; ids.has(id); count++) id = `${base}-${count}`
  ids.add(id)
  return id
}

function ruleOf(
  { path, kind }: Outcome,
  { id, keys, priority }: { readonly id: string; readonly keys: readonly string[]; readonly priority?: number },
): RuleInput {
  const leaf = path.at(-1) as DescriptorNode
  const conditions = path.flatMap(({ attribute, value }) =>
    value === undefined ? [] : [[`attributes.${attribute}`, value] as const],
  )
  const common = {
    id,
    ...(kind !== 'OPEN' && leaf.name !== undefined && { name: leaf.name }),
    ...(priority !== undefined && { priority }),
    when: { [`attributes.${keysAttribute}`]: joinKeyParts(keys), ...Object.fromEntries(conditions) },
  }
  const { limit } = leaf
  if (kind !== 'LIMIT' || limit === undefined || limit === 'UNLIMITED') {
    const band = { label: 'unlimited', capacity: maxCapacity, windowMs: 1 }
    return { ...common, limitScope: 'GLOBAL', algorithm: 'FIXED_WINDOW', bands: [band], onStoreFailure: 'ALLOW' }
  }
  const window = {
    label: limit.unit,
    capacity: limit.requestsPerUnit,
    windowMs: windowByUnit.get(limit.unit) as number,
  }
  return {
    ...common,
    ...scopeOf(path),
    algorithm: 'FIXED_WINDOW',
    bands: [window],
    ...(leaf.isShadow && { mode: 'SHADOW' as const }),
  }
}

/** Values that the configuration does not name have counters of their own. */
function scopeOf(path: readonly DescriptorNode[]): Pick<RuleInput, 'limitScope' | 'keyField' | 'compositeKeyFields'> {
  const fields = path.flatMap(({ attribute, value }) => (value === undefined ? [`attributes.${attribute}`] : []))
  const [only] = fields
  if (only === undefined) return { limitScope: 'GLOBAL' }
  return fields.length === 1
    ? { limitScope: 'CUSTOM', keyField: only }
    : { limitScope: 'COMPOSITE', compositeKeyFields: fields }
}
