/** Reads the configuration of envoyproxy/ratelimit: a domain and a tree of descriptors. */
import { isObject } from '../../validation/fields.js'
import { describeValue, placeOf, quoted, type ValidationIssues } from '../../validation/issues.js'
import { nameHint } from '../../validation/nearest.js'
import { repeatedKey } from '../ratelimit/descriptor-check.js'
import { windowByUnit } from '../ratelimit/units.js'

/** A descriptor of the configuration, with everything that the path to it determines. */
export interface DescriptorNode {
  /** Where the file declares it. */
  readonly place: string
  readonly key: string
  /** The attribute of its entry. */
  readonly attribute: string
  /** Undefined for every value that no sibling names. */
  readonly value: string | undefined
  readonly limit: Limit | 'UNLIMITED' | undefined
  readonly isShadow: boolean
  readonly children: readonly DescriptorNode[]
  /** The name and the replaced names of its limit. */
  readonly name: string | undefined
  readonly replaces: readonly string[]
}

interface Limit {
  readonly requestsPerUnit: number
  readonly unit: string
}

export interface LimitDomain {
  readonly domain: string
  readonly descriptors: readonly DescriptorNode[]
}

const maxCapacity = 1_000_000_000
const maxDepth = 16
const maxValueLength = 1_024
const rootNames = ['domain', 'descriptors']
const descriptorNames = [
  'key',
  'value',
  'rate_limit',
  'descriptors',
  'shadow_mode',
  'quota_mode',
  'detailed_metric',
  'value_to_metric',
  'share_threshold',
]
const limitNames = ['unit', 'requests_per_unit', 'unlimited', 'name', 'replaces']

/** Reports everything that has no equivalent. `notes` receive what changes nothing about the limits. */
export function readLimits(document: unknown, issues: ValidationIssues, notes: ValidationIssues): LimitDomain {
  const root = objectOf(document, 'document', '', rootNames, issues)
  const { domain } = root
  if (typeof domain !== 'string' || !/^[A-Za-z0-9._:-]{1,128}$/.test(domain))
    issues.add(
      'domain',
      `must be the ID of a rule set: 1 to 128 letters, digits and . _ - :; received ${describeValue(domain)}. Envoy sends the domain, so change it there too`,
    )
  const reader: Reader = { issues, notes }
  return { domain: String(domain), descriptors: readDescriptors(root.descriptors, 'descriptors', [], reader) }
}

interface Reader {
  readonly issues: ValidationIssues
  readonly notes: ValidationIssues
}

function readDescriptors(
  value: unknown,
  path: string,
  keys: readonly string[],
  reader: Reader,
): readonly DescriptorNode[] {
  const { issues } = reader
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) {
    issues.add(path, `must be a list of descriptors; received ${describeValue(value)}`)
    return []
  }
  if (keys.length === maxDepth) {
    issues.add(path, `is nested deeper than ${maxDepth} levels`)
    return []
  }
  const seen = new Set<string>()
  return value.map((item: unknown, index) => {
    const node = readDescriptor(item, `${path}[${index}]`, keys, reader)
    const name = JSON.stringify([node.key, node.value])
    if (seen.has(name)) issues.add(node.place, 'duplicates an earlier descriptor with the same key and value')
    seen.add(name)
    return node
  })
}

function readDescriptor(item: unknown, place: string, keys: readonly string[], reader: Reader): DescriptorNode {
  const { issues, notes } = reader
  const descriptor = objectOf(item, 'a descriptor', place, descriptorNames, issues)
  const key = descriptor.key === undefined ? '' : scalarText(descriptor.key, placeOf(place, 'key'), issues)
  if (key === '' || key.length > 120 || /\p{Cc}/u.test(key))
    issues.add(placeOf(place, 'key'), 'must be 1 to 120 characters without control characters')
  const given = descriptor.value ?? ''
  const value = scalarText(given, placeOf(place, 'value'), issues)
  if (value.endsWith('*'))
    issues.add(
      placeOf(place, 'value'),
      `has no equivalent: rules compare whole values, not the prefix ${quoted(value)}. Name each value in a descriptor of its own, or omit the value to limit each value separately`,
    )
  else if (value === '' && key.endsWith('*'))
    issues.add(
      placeOf(place, 'key'),
      `has no equivalent: rules compare whole keys, not the prefix ${quoted(key)}. Name each key in a descriptor of its own`,
    )
  if (value.length > maxValueLength)
    issues.add(placeOf(place, 'value'), `must have at most ${maxValueLength} characters`)
  for (const name of ['detailed_metric', 'value_to_metric'])
    if (descriptor[name] === true) notes.add(placeOf(place, name), 'has no effect: it concerns metrics only')
  if (descriptor.quota_mode === true)
    notes.add(placeOf(place, 'quota_mode'), 'becomes mode: SHADOW; the answer has no dynamic metadata')
  const count = keys.filter((one) => one === key).length + 1
  return {
    place,
    key,
    attribute: count === 1 ? key : repeatedKey(key, count),
    value: value === '' ? undefined : value,
    isShadow: descriptor.shadow_mode === true || descriptor.quota_mode === true,
    ...readLimit(descriptor.rate_limit, placeOf(place, 'rate_limit'), issues),
    children: readDescriptors(descriptor.descriptors, placeOf(place, 'descriptors'), [...keys, key], reader),
  }
}

function readLimit(
  value: unknown,
  path: string,
  issues: ValidationIssues,
): Pick<DescriptorNode, 'limit' | 'name' | 'replaces'> {
  if (value === undefined || value === null) return { limit: undefined, name: undefined, replaces: [] }
  const given = objectOf(value, 'a limit', path, limitNames, issues)
  const name = typeof given.name === 'string' && given.name !== '' ? given.name : undefined
  const replaces = readReplaces(given.replaces, placeOf(path, 'replaces'), name, issues)
  if (given.unlimited === true) {
    if (given.unit !== undefined) issues.add(placeOf(path, 'unit'), 'must be omitted with unlimited: true')
    return { limit: 'UNLIMITED', name, replaces }
  }
  const unit = String(given.unit).toLowerCase()
  if (!windowByUnit.has(unit))
    issues.add(
      placeOf(path, 'unit'),
      `must be one of ${[...windowByUnit.keys()].toReversed().join(', ')}; received ${describeValue(given.unit)}`,
    )
  const { requests_per_unit: requests = 0 } = given
  if (!Number.isInteger(requests) || Number(requests) < 0 || Number(requests) > maxCapacity)
    issues.add(
      placeOf(path, 'requests_per_unit'),
      `must be an integer from 0 to ${maxCapacity}; received ${describeValue(requests)}. For no limit, use unlimited: true`,
    )
  return { limit: { requestsPerUnit: Number(requests), unit }, name, replaces }
}

function readReplaces(value: unknown, path: string, own: string | undefined, issues: ValidationIssues): string[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) {
    issues.add(path, `must be a list of names; received ${describeValue(value)}`)
    return []
  }
  return value.map((item: unknown, index) => {
    const { name } = objectOf(item, 'an object with a name', `${path}[${index}]`, ['name'], issues)
    if (typeof name !== 'string' || name === '') issues.add(`${path}[${index}].name`, 'must be a non-empty string')
    else if (name === own) issues.add(`${path}[${index}].name`, 'must not be the name of the same limit')
    return String(name)
  })
}

function objectOf(
  value: unknown,
  what: string,
  path: string,
  names: readonly string[],
  issues: ValidationIssues,
): Readonly<Record<string, unknown>> {
  if (!isObject(value)) {
    issues.add(
      path || 'document',
      `must be ${what === 'document' ? 'an object with domain and descriptors' : what}; received ${describeValue(value)}`,
    )
    return {}
  }
  for (const name of Object.keys(value))
    if (!names.includes(name)) issues.add(placeOf(path, name), `unknown key; ${nameHint(name, names)}`)
  return value as Readonly<Record<string, unknown>>
}

/** YAML reads values such as 404 and true as numbers and booleans. */
function scalarText(value: unknown, path: string, issues: ValidationIssues): string {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return String(value)
  issues.add(path, `must be text; received ${describeValue(value)}`)
  return ''
}
