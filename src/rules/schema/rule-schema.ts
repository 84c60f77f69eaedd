import { omitUndefined } from '../../core/omit-undefined.js'
import type { AlgorithmName, Band, Rule } from '../../core/rule.js'
import { maxCapacity, maxWindowTicks, requestCost, ruleChanges } from '../../core/rule.js'
import { type Fields, type FieldValues, givenAlias, isObject, itemsOf, openFields } from '../../validation/fields.js'
import type { ValidationIssues } from '../../validation/issues.js'
import { described, type Kind, structured, wrongValue } from '../../validation/kind.js'
import { boolean, identifier, instant, oneOf, percentage, text, wholeNumber } from '../../validation/kinds.js'
import { list } from '../../validation/structures.js'
import { banKind } from './fields/ban-schema.js'
import { labelBands } from './fields/band-labels.js'
import { algorithmKind, bandKinds, bandList, type DraftBand, maxBands, readBand } from './fields/band-schema.js'
import { whenKind } from './fields/condition-schema.js'
import { copyJson } from './fields/json-value.js'
import { keyKinds, readKeys } from './fields/key-schema.js'
import { methods, pathPattern } from './fields/request-kinds.js'

const policyKind = oneOf(['REJECT', 'WAIT_FOR_REFILL'] as const, [['REJECT_REQUEST', 'REJECT']])

const attributesKind: Kind<unknown> = structured(
  'an object',
  { type: 'object', additionalProperties: true },
  (value, path, issues) => {
    if (isObject(value)) return copyJson(value, path, issues)
    issues.add(path, wrongValue(value, 'an object'))
    return undefined
  },
)

const setByStore = 'Set by the store; ignored in requests.'

/** The fields of a rule, in the order of the reference. */
export const ruleKinds = {
  id: identifier,
  name: text,
  description: text,
  enabled: described(boolean, 'Default: true.'),
  priority: described(wholeNumber(-maxCapacity, maxCapacity), 'Higher values first; ties by ID. Default: 0.'),
  path: described(pathPattern, 'Path pattern with `?`, `*`, `**` and `{name}`. Default: `/**`.'),
  method: described(methods, '`GET`, `[GET, HEAD]` or `*`. Default: any.'),
  when: whenKind,
  ...keyKinds,
  onMissingKey: described(oneOf(['ANONYMOUS', 'SKIP', 'DENY'] as const), 'Default: ANONYMOUS.'),
  algorithm: algorithmKind,
  bands: bandList,
  permits: described(wholeNumber(1, maxCapacity), 'Default: 1.'),
  cost: described(identifier, 'The cost that the rule charges, such as `tokens`. Default: `requests`.'),
  onLimitExceed: described(policyKind, 'Default: REJECT.'),
  onLimitExceedPolicy: described(policyKind, 'Alias of `onLimitExceed`.'),
  maxWaitMs: wholeNumber(0, maxWindowTicks / 1_000),
  mode: described(oneOf(['ENFORCE', 'SHADOW'] as const), 'Default: ENFORCE.'),
  enforcePercent: described(
    percentage,
    'Share of keys for which the rule enforces; a shadow for all others. Default: 100.',
  ),
  consistency: described(
    oneOf(['EXACT', 'LEASED'] as const),
    'Default: EXACT. LEASED: TOKEN_BUCKET and FIXED_WINDOW only.',
  ),
  onStoreFailure: oneOf(['LOCAL', 'ALLOW', 'DENY'] as const),
  ban: described(banKind, 'Rejects every request of a key for some time after repeated rejections by this rule.'),
  replaces: described(
    list(identifier, { max: 100 }),
    'IDs of rules that a joint decision, such as a call of Envoy, does not charge if this rule applies.',
  ),
  onRuleChange: described(
    oneOf(ruleChanges),
    'Existing buckets when the bands change. RESET: start full. KEEP: keep the level. SCALE: keep the used fraction. Default: from the configuration.',
  ),
  overrides: described(boolean, 'Enable overrides for this rule. Default: false.'),
  attributes: described(attributesKind, 'Free-form JSON, preserved byte for byte.'),
  createdAt: described(instant, setByStore),
  updatedAt: described(instant, setByStore),
  version: described(wholeNumber(0, Number.MAX_SAFE_INTEGER), `${setByStore} The ETag.`),
}

/** A single rule may have the fields of its only band in place of `bands`. */
const { algorithm: _, ...shorthandKinds } = bandKinds
export const singleRuleKinds = { ...ruleKinds, ...shorthandKinds }

const leasable: readonly AlgorithmName[] = ['TOKEN_BUCKET', 'FIXED_WINDOW']

/** Reads a rule of a set. Returns `undefined` if it is invalid, after reporting all of its issues. */
export function readRule(value: unknown, path: string, issues: ValidationIssues): Rule | undefined {
  const before = issues.count
  const fields = openFields(value, path, ruleKinds, 'a rule: { id, bands, … }', issues)
  if (fields === undefined) return undefined
  const id = fields.require('id') ?? ''
  const algorithm = readAlgorithm(fields, 'TOKEN_BUCKET')
  const rule = { id, ...readCommon(fields), bands: readBands(fields, algorithm) }
  return issues.count === before ? rule : undefined
}

/** Reads a rule outside a rule set. It needs no id, and its only band may be written without `bands`. */
export function readSingleRule(value: unknown, path: string, issues: ValidationIssues): Rule | undefined {
  const before = issues.count
  const allowed = 'a rule: { capacity, window, … } or { bands, … }'
  const fields = openFields(value, path, singleRuleKinds, allowed, issues)?.as(ruleKinds)
  if (fields === undefined) return undefined
  const id = fields.read('id') ?? 'limiter'
  const algorithm = readAlgorithm(fields, 'TOKEN_BUCKET')
  const common = readCommon(fields)
  let bands: readonly Band[]
  if (fields.has('bands')) {
    for (const name of Object.keys(shorthandKinds))
      if (fields.has(name)) fields.report(name, 'must not be combined with bands; move it into a band, or remove bands')
    bands = readBands(fields, algorithm)
  } else {
    const draft = readBand(fields, algorithm)
    checkLease(fields, [draft])
    bands = labelBands([draft], path, issues)
  }
  return issues.count === before ? { id, ...common, bands } : undefined
}

function readCommon(fields: Fields<typeof ruleKinds>): Omit<Rule, 'id' | 'bands'> {
  const policy = givenAlias(fields, ['onLimitExceed', 'onLimitExceedPolicy']) ?? 'onLimitExceed'
  const optional = {
    name: fields.read('name'),
    description: fields.read('description'),
    cost: readCost(fields),
    maxWaitMs: fields.read('maxWaitMs'),
    onStoreFailure: fields.read('onStoreFailure'),
    enforcePercent: fields.read('enforcePercent'),
    onRuleChange: fields.read('onRuleChange'),
    replaces: fields.read('replaces'),
    ban: fields.read('ban'),
    attributes: fields.read('attributes'),
    createdAt: fields.read('createdAt'),
    updatedAt: fields.read('updatedAt'),
    version: fields.read('version'),
  }
  const methods = fields.read('method') ?? []
  return {
    enabled: fields.read('enabled') ?? true,
    priority: fields.read('priority') ?? 0,
    path: fields.read('path') ?? '/**',
    methods: methods.includes('*') ? [] : [...new Set(methods)],
    when: fields.read('when') ?? [],
    ...readKeys(fields),
    onMissingKey: fields.read('onMissingKey') ?? 'ANONYMOUS',
    permits: fields.read('permits') ?? 1,
    policy: fields.read(policy) ?? 'REJECT',
    mode: fields.read('mode') ?? 'ENFORCE',
    consistency: fields.read('consistency') ?? 'EXACT',
    overrides: fields.read('overrides') ?? false,
    ...omitUndefined(optional),
  }
}

/** Left out for `requests`, which every request has. */
function readCost(fields: Fields<typeof ruleKinds>): string | undefined {
  const cost = fields.read('cost')
  return cost === requestCost ? undefined : cost
}

/** Returns `undefined` only for an invalid algorithm. */
function readAlgorithm(values: FieldValues, fallback: AlgorithmName | undefined): AlgorithmName | undefined {
  return values.has('algorithm') ? values.as({ algorithm: algorithmKind }).read('algorithm') : fallback
}

export function readBands(fields: FieldValues, ruleAlgorithm: AlgorithmName | undefined): readonly Band[] {
  const { issues } = fields
  const items = itemsOf(fields.value('bands')) ?? []
  const path = fields.at('bands')
  if (items.length === 0 || items.length > maxBands) {
    issues.add(path, wrongValue(fields.value('bands'), `a list of 1 to ${maxBands} bands`))
  }
  const drafts = items.map((value, index): DraftBand => {
    const band = openFields(value, `${path}[${index}]`, bandKinds, 'a band: { capacity, window, … }', issues)
    return band === undefined ? invalidBand : readBand(band, readAlgorithm(band, ruleAlgorithm))
  })
  checkLease(fields, drafts)
  return labelBands(drafts, path, issues)
}

const invalidBand: DraftBand = {
  label: undefined,
  algorithm: undefined,
  refill: undefined,
  capacity: undefined,
  refillTokens: undefined,
  windowTicks: undefined,
}

/** A lease reserves permits in advance. Only some algorithms can do so without admitting more requests than the limit. */
function checkLease(fields: FieldValues, drafts: readonly DraftBand[]): void {
  if (fields.value('consistency') !== 'LEASED') return
  if (fields.has('ban'))
    fields.report('ban', 'must not be combined with consistency: LEASED; every rejection is counted by the store')
  const other = drafts.find(({ algorithm }) => algorithm !== undefined && !leasable.includes(algorithm))
  if (other === undefined) return
  fields.report('consistency', `must be EXACT with ${other.algorithm}; LEASED requires ${leasable.join(' or ')}`)
}
