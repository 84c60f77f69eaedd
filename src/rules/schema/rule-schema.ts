import { omitUndefined } from '../../core/omit-undefined.js'
import type { AlgorithmName, Band, Rule } from '../../core/rule.js'
import { maxCapacity, maxWindowTicks } from '../../core/rule.js'
import { type Fields, isObject, itemsOf, oneSpelling, openFields, wrongValue } from '../../validation/fields.js'
import type { ValidationIssues } from '../../validation/issues.js'
import { boolean, identifier, instant, oneOf, text, wholeNumber } from '../../validation/kinds.js'
import { labelBands } from './band-labels.js'
import { algorithmKind, bandFields, type DraftBand, readBand } from './band-schema.js'
import { readWhen } from './condition-schema.js'
import { copyJson } from './free-json.js'
import { readKeys } from './key-schema.js'
import { readMethods } from './method-schema.js'
import { pathPattern } from './path-schema.js'

export const maxBands = 8

/** The fields of a rule, in the order of the reference. */
export const ruleFields: readonly string[] = [
  ...['id', 'name', 'description', 'enabled', 'priority', 'path', 'method', 'when', 'limitScope', 'scope'],
  ...['compositeKeyFields', 'keyField', 'keyResolver', 'onMissingKey', 'algorithm', 'bands', 'permits'],
  ...['onLimitExceed', 'onLimitExceedPolicy', 'maxWaitMs', 'mode', 'consistency', 'onStoreFailure', 'overrides'],
  ...['attributes', 'createdAt', 'updatedAt', 'version'],
]

/** Band fields that a single rule may have in place of `bands`. */
const shortFields = bandFields.filter((name) => name !== 'algorithm')
export const singleRuleFields: readonly string[] = [...ruleFields, ...shortFields]

const priorityKind = wholeNumber(-maxCapacity, maxCapacity)
const permitsKind = wholeNumber(1, maxCapacity)
export const maxWaitMs = maxWindowTicks / 1_000
const maxWaitKind = wholeNumber(0, maxWaitMs)
const versionKind = wholeNumber(0, Number.MAX_SAFE_INTEGER)
const missingKeyKind = oneOf(['ANONYMOUS', 'SKIP', 'DENY'] as const)
const policyKind = oneOf(['REJECT', 'WAIT_FOR_REFILL'] as const, [['REJECT_REQUEST', 'REJECT']])
const modeKind = oneOf(['ENFORCE', 'SHADOW'] as const)
const consistencyKind = oneOf(['EXACT', 'LEASED'] as const)
const storeFailureKind = oneOf(['LOCAL', 'ALLOW', 'DENY'] as const)
const leasable: readonly AlgorithmName[] = ['TOKEN_BUCKET', 'FIXED_WINDOW']

/** Reads a rule of a set. Returns `undefined` if it is invalid, after reporting all of its issues. */
export function readRule(value: unknown, path: string, issues: ValidationIssues): Rule | undefined {
  const before = issues.count
  const fields = openFields(value, path, ruleFields, 'a rule: { id, bands, … }', issues)
  if (fields === undefined) return undefined
  const id = fields.require('id', identifier)
  const algorithm = readAlgorithm(fields, 'TOKEN_BUCKET')
  const rule = { id: id ?? '', ...readCommon(fields, issues), bands: readBands(fields, algorithm, issues) }
  return issues.count === before ? rule : undefined
}

/** Reads a rule outside a rule set. It needs no id, and its only band may be written without `bands`. */
export function readSingleRule(value: unknown, path: string, issues: ValidationIssues): Rule | undefined {
  const before = issues.count
  const allowed = 'a rule: { capacity, window, … } or { bands, … }'
  const fields = openFields(value, path, singleRuleFields, allowed, issues)
  if (fields === undefined) return undefined
  const id = fields.read('id', identifier) ?? 'limiter'
  const algorithm = readAlgorithm(fields, 'TOKEN_BUCKET')
  const bandShorthand = shortFields.filter((name) => fields.has(name))
  const common = readCommon(fields, issues)
  let bands: readonly Band[]
  if (fields.has('bands')) {
    for (const name of bandShorthand)
      fields.wrong(name, `must not be combined with bands; move it into a band, or remove bands`)
    bands = readBands(fields, algorithm, issues)
  } else {
    const draft = readBand(fields, algorithm)
    checkLease(fields, [draft])
    bands = labelBands([draft], path, issues)
  }
  return issues.count === before ? { id, ...common, bands } : undefined
}

function readCommon(fields: Fields, issues: ValidationIssues): Omit<Rule, 'id' | 'bands'> {
  const policy = oneSpelling(fields, ['onLimitExceed', 'onLimitExceedPolicy']) ?? 'onLimitExceed'
  const optional = {
    name: fields.read('name', text),
    description: fields.read('description', text),
    maxWaitMs: fields.read('maxWaitMs', maxWaitKind),
    onStoreFailure: fields.read('onStoreFailure', storeFailureKind),
    attributes: readAttributes(fields, issues),
    createdAt: fields.read('createdAt', instant),
    updatedAt: fields.read('updatedAt', instant),
    version: fields.read('version', versionKind),
  }
  return {
    enabled: fields.read('enabled', boolean) ?? true,
    priority: fields.read('priority', priorityKind) ?? 0,
    path: fields.read('path', pathPattern) ?? '/**',
    methods: readMethods(fields),
    when: readWhen(fields, issues),
    ...readKeys(fields),
    onMissingKey: fields.read('onMissingKey', missingKeyKind) ?? 'ANONYMOUS',
    permits: fields.read('permits', permitsKind) ?? 1,
    policy: fields.read(policy, policyKind) ?? 'REJECT',
    mode: fields.read('mode', modeKind) ?? 'ENFORCE',
    consistency: fields.read('consistency', consistencyKind) ?? 'EXACT',
    overrides: fields.read('overrides', boolean) ?? false,
    ...omitUndefined(optional),
  }
}

function readAttributes(fields: Fields, issues: ValidationIssues): unknown {
  const attributes = fields.value('attributes')
  if (attributes === undefined) return undefined
  if (isObject(attributes)) return copyJson(attributes, fields.at('attributes'), issues)
  fields.wrong('attributes', wrongValue(attributes, 'an object'))
  return undefined
}

/** Returns `undefined` only for an invalid algorithm. */
function readAlgorithm(fields: Fields, fallback: AlgorithmName | undefined): AlgorithmName | undefined {
  return fields.has('algorithm') ? fields.read('algorithm', algorithmKind) : fallback
}

export function readBands(
  fields: Fields,
  ruleAlgorithm: AlgorithmName | undefined,
  issues: ValidationIssues,
): readonly Band[] {
  const given = itemsOf(fields.value('bands')) ?? []
  const path = fields.at('bands')
  if (given.length === 0 || given.length > maxBands) {
    issues.add(path, wrongValue(fields.value('bands'), `a list of 1 to ${maxBands} bands`))
  }
  const drafts = given.map((value, index): DraftBand => {
    const band = openFields(value, `${path}[${index}]`, bandFields, 'a band: { capacity, window, … }', issues)
    return band === undefined ? unreadable : readBand(band, readAlgorithm(band, ruleAlgorithm))
  })
  checkLease(fields, drafts)
  return labelBands(drafts, path, issues)
}

const unreadable: DraftBand = {
  label: undefined,
  algorithm: undefined,
  refill: undefined,
  capacity: undefined,
  refillTokens: undefined,
  windowTicks: undefined,
}

/** A lease reserves permits in advance. Only some algorithms can do so without admitting more requests than the limit. */
function checkLease(fields: Fields, drafts: readonly DraftBand[]): void {
  if (fields.value('consistency') !== 'LEASED') return
  const other = drafts.find(({ algorithm }) => algorithm !== undefined && !leasable.includes(algorithm))
  if (other === undefined) return
  fields.wrong('consistency', `must be EXACT with ${other.algorithm}; LEASED requires ${leasable.join(' or ')}`)
}
