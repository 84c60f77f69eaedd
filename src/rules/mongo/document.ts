/**
 * Converts rules to MongoDB documents and back. Fields keep their names and order.
 *
 * Some servers do not support all JSON values: names with a dot or `$`, nested lists, strings with NUL or unpaired
 * surrogates. Such a field is stored as null, with its JSON text in `asJson`. `attributes` with source text to keep
 * (`core/json/source-text`) are stored both as a value and as JSON text; an edit of the value takes precedence.
 */
import { createHash } from 'node:crypto'
import type { RuleDocument } from '../../core/contracts/rule-store.js'
import { jsonText, keepSourceText, sourceTextOf } from '../../core/json/source-text.js'
import { isObject, itemsOf } from '../../validation/fields.js'
import { jsonIssue } from '../document/json-text.js'
import { withoutStoreFields } from '../store/rule-document.js'
import type { MongoDocument } from './database.js'

/** Servers support 100 levels of nesting, and FluxGate itself uses some of them. */
const maxDepth = 50

/** Fields that are not part of a rule: those of FluxGate, and the class marker of Spring Data. */
const otherFields = new Set(['_id', 'ruleSetId', 'asJson', '_class'])

export const documentId = (ruleSetId: string, ruleId: string): string => `${ruleSetId}/${ruleId}`

export function toMongo(ruleSetId: string, rule: RuleDocument): MongoDocument {
  return { _id: documentId(ruleSetId, rule.id), ruleSetId, ...encodeFields(rule) }
}

/** Documents of other programs may have the rule id only in `_id`. */
export function fromMongo(document: MongoDocument): RuleDocument {
  const fields = decodeFields(document)
  return typeof fields.id === 'string' ? (fields as RuleDocument) : { id: idIn(document), ...fields }
}

function idIn({ _id, ruleSetId }: MongoDocument): string {
  const id = String(_id)
  const set = `${String(ruleSetId)}/`
  return id.startsWith(set) ? id.slice(set.length) : id
}

export function encodeFields(fields: Readonly<Record<string, unknown>>): MongoDocument {
  const packed: Record<string, unknown> = {}
  const asJson: Record<string, string> = {}
  for (const [name, value] of Object.entries(fields)) {
    packed[name] = isRepresentable(value, 0) ? value : null
    if (packed[name] === null || sourceTextOf(value) !== undefined) asJson[name] = jsonText(value)
  }
  return Object.keys(asJson).length === 0 ? packed : { ...packed, asJson }
}

export function decodeFields(document: MongoDocument): Record<string, unknown> {
  const asJson = isObject(document.asJson) ? document.asJson : {}
  const fields: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(document)) {
    if (otherFields.has(name)) continue
    const text = asJson[name]
    if (value !== null && value !== undefined) fields[name] = withText(toJsonValue(value), text)
    else if (typeof text === 'string') fields[name] = withText(JSON.parse(text), text)
  }
  return fields
}

function withText(value: unknown, text: unknown): unknown {
  if (typeof text === 'string' && isObject(value) && jsonIssue(text) === undefined) keepSourceText(value, text)
  return value
}

/** True if every supported server returns the value unchanged. */
function isRepresentable(value: unknown, depth: number): boolean {
  if (depth > maxDepth) return false
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value === 'string') return isSupportedText(value)
  const items = itemsOf(value)
  if (items !== undefined) return items.every((item) => !Array.isArray(item) && isRepresentable(item, depth + 1))
  if (!isObject(value)) return value !== null || depth > 0
  return Object.entries(value).every(([name, member]) => isSupportedName(name) && isRepresentable(member, depth + 1))
}

const isSupportedText = (text: string): boolean => !/[\0\p{Surrogate}]/u.test(text)

const isSupportedName = (name: string): boolean =>
  isSupportedText(name) && !name.includes('.') && !/^(?:\$|__proto__$)/.test(name)

/** Converts dates and numeric types, as written by drivers of other languages, to JSON values. */
function toJsonValue(value: unknown): unknown {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? String(value) : value.toISOString()
  const items = itemsOf(value)
  if (items !== undefined) return items.map(toJsonValue)
  if (!isObject(value)) return value
  if ('_bsontype' in value) return isNumeric(value._bsontype) ? Number(String(value)) : String(value)
  const object = {}
  // An assignment to `__proto__` would set the prototype.
  for (const [name, member] of Object.entries(value))
    Object.defineProperty(object, name, {
      value: toJsonValue(member),
      writable: true,
      enumerable: true,
      configurable: true,
    })
  return object
}

const isNumeric = (type: unknown): boolean => ['Int32', 'Long', 'Double', 'Decimal128'].includes(String(type))

/** Digests of rules that were read. These objects never change, and the next edit of their set needs all digests. */
const digests = new WeakMap<RuleDocument, string>()

/** Equal for rules that differ only in the fields of the store. */
export const digestOf = (rule: RuleDocument): string =>
  digests.get(rule) ??
  createHash('sha256')
    .update(jsonText(withoutStoreFields(rule)))
    .digest('base64url')
    .slice(0, 22)

/** Returns the rule with its stored version, and caches its digest. */
export function withVersion(rule: RuleDocument, version: number, digest: string): RuleDocument {
  const read = { ...rule, version }
  digests.set(read, digest)
  return read
}
