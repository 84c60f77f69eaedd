/**
 * Rules as documents of MongoDB: the fields of a rule under their own names, in their own order.
 *
 * Not every server keeps everything that JSON can say: names with a dot or a `$`, lists of lists, texts with NUL or half a
 * character. A field with any of it is null in its place, and stands as JSON text in `asJson`. So do `attributes` whose owner
 * gets back more than what they mean (`core/written-json`), beside their value: who edits that has written something new.
 */
import { createHash } from 'node:crypto'
import { jsonText, keepText, writtenText } from '../../core/json/written-json.js'
import type { RuleDocument } from '../../core/rule-store.js'
import { isObject, itemsOf } from '../../validation/fields.js'
import { jsonMistake } from '../document/json-text.js'
import { withoutStoreFields } from '../store/rule-document.js'
import type { MongoDocument } from './database.js'

/** Servers nest documents up to a hundred levels deep, and some of them are ours. */
const maxDepth = 50

/** What is in a document besides the fields of a rule: ours, and the mark that Spring Data leaves. */
const otherNames = new Set(['_id', 'ruleSetId', 'asJson', '_class'])

export const documentId = (ruleSetId: string, ruleId: string): string => `${ruleSetId}/${ruleId}`

export function toMongo(ruleSetId: string, rule: RuleDocument): MongoDocument {
  return { _id: documentId(ruleSetId, rule.id), ruleSetId, ...pack(rule) }
}

/** Also of documents that others wrote, which may leave the rule's id to `_id`. */
export function fromMongo(document: MongoDocument): RuleDocument {
  const fields = unpack(document)
  return typeof fields.id === 'string' ? (fields as RuleDocument) : { id: idIn(document), ...fields }
}

function idIn({ _id, ruleSetId }: MongoDocument): string {
  const id = String(_id)
  const set = `${String(ruleSetId)}/`
  return id.startsWith(set) ? id.slice(set.length) : id
}

export function pack(fields: Readonly<Record<string, unknown>>): MongoDocument {
  const packed: Record<string, unknown> = {}
  const asJson: Record<string, string> = {}
  for (const [name, value] of Object.entries(fields)) {
    packed[name] = isKept(value, 0) ? value : null
    if (packed[name] === null || writtenText(value) !== undefined) asJson[name] = jsonText(value)
  }
  return Object.keys(asJson).length === 0 ? packed : { ...packed, asJson }
}

export function unpack(document: MongoDocument): Record<string, unknown> {
  const asJson = isObject(document.asJson) ? document.asJson : {}
  const fields: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(document)) {
    if (otherNames.has(name)) continue
    const text = asJson[name]
    if (value !== null && value !== undefined) fields[name] = withText(plain(value), text)
    else if (typeof text === 'string') fields[name] = withText(JSON.parse(text), text)
  }
  return fields
}

function withText(value: unknown, text: unknown): unknown {
  if (typeof text === 'string' && isObject(value) && jsonMistake(text) === undefined) keepText(value, text)
  return value
}

/** Whether every server gives it back as it is. */
function isKept(value: unknown, depth: number): boolean {
  if (depth > maxDepth) return false
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value === 'string') return isText(value)
  const items = itemsOf(value)
  if (items !== undefined) return items.every((item) => !Array.isArray(item) && isKept(item, depth + 1))
  if (!isObject(value)) return value !== null || depth > 0
  return Object.entries(value).every(([name, member]) => isName(name) && isKept(member, depth + 1))
}

const isText = (text: string): boolean => !/[\0\p{Surrogate}]/u.test(text)

const isName = (name: string): boolean => isText(name) && !name.includes('.') && !/^(?:\$|__proto__$)/.test(name)

/** What drivers of other languages write as dates and as numbers of their own kinds, as JSON has it. */
function plain(value: unknown): unknown {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? String(value) : value.toISOString()
  const items = itemsOf(value)
  if (items !== undefined) return items.map(plain)
  if (!isObject(value)) return value
  if ('_bsontype' in value) return isNumeric(value._bsontype) ? Number(String(value)) : String(value)
  const object = {}
  // Assigning would take the name `__proto__` for the prototype.
  for (const [name, member] of Object.entries(value))
    Object.defineProperty(object, name, { value: plain(member), writable: true, enumerable: true, configurable: true })
  return object
}

const isNumeric = (type: unknown): boolean => ['Int32', 'Long', 'Double', 'Decimal128'].includes(String(type))

const digests = new WeakMap<RuleDocument, string>()

/** Equal for rules that their owner cannot tell apart. Rules are not changed, so it is worked out once. */
export function digestOf(rule: RuleDocument): string {
  const known = digests.get(rule)
  if (known !== undefined) return known
  const text = jsonText(withoutStoreFields(rule))
  const digest = createHash('sha256').update(text).digest('base64url').slice(0, 22)
  digests.set(rule, digest)
  return digest
}

/** The same rule with the version that the store has for it. */
export function withVersion(rule: RuleDocument, version: number): RuleDocument {
  const versioned = { ...rule, version }
  digests.set(versioned, digestOf(rule))
  return versioned
}
