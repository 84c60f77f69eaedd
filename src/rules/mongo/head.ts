/**
 * The head of a rule set: its last change and the resulting state. Heads are only inserted, with the id `<set>/<version>`,
 * because an insert is atomic on every server: the process that inserts the next version commits its change. The change is
 * then applied to the documents of the rules, by that process or by another one that finds it incomplete.
 */
import { randomUUID } from 'node:crypto'
import type { HistoryEntry, RuleDocument, RuleSetHead } from '../../core/contracts/rule-store.js'
import { jsonTextSteps } from '../../core/json/json-steps.js'
import { omitUndefined } from '../../core/omit-undefined.js'
import { mapInSteps, type Steps } from '../../core/scheduling/steps.js'
import { jsonValueSteps } from '../document/json-text.js'
import { versionOf } from '../store/rule-document.js'
import type { RuleSetChange } from '../store/rule-storage.js'
import type { MongoDocument } from './database.js'
import { decodeFields, digestOf, encodeFields } from './document.js'

export interface MongoHead extends MongoDocument {
  readonly _id: string
  readonly ruleSetId: string
  readonly version: number
  readonly removedVersion: number
  /** Unique per attempt, so that the writer can recognize its own head. */
  readonly commit: string
  /** False if the rule set was removed. */
  readonly exists: boolean
  /** A `RuleMark` of each rule, as JSON text: the driver would decode thousands of objects in one turn of the event loop. */
  readonly marks?: string
  /** The `PendingChange` as JSON; removed once it is applied. */
  readonly todo?: string
}

/** The digest shows whether another program has edited the rule. */
export type RuleMark = readonly [id: string, version: number, digest: string]

export interface PendingChange {
  readonly put: readonly RuleDocument[]
  readonly remove: readonly string[]
  readonly entry: HistoryEntry
}

export function* createHead({ ruleSetId, after, put, remove, entry }: RuleSetChange): Steps<MongoHead> {
  const { version, removedVersion, head, rules } = after
  const { description, strategy, caseSensitive, candidateOf } = head ?? {}
  const todo: PendingChange = { put, remove, entry }
  const marks = yield* mapInSteps(rules, (rule): RuleMark => [rule.id, versionOf(rule), digestOf(rule)])
  return {
    _id: `${ruleSetId}/${version}`,
    ruleSetId,
    version,
    removedVersion,
    commit: randomUUID(),
    exists: head !== undefined,
    ...encodeFields(omitUndefined({ description, strategy, caseSensitive, candidateOf })),
    marks: yield* jsonTextSteps(marks),
    todo: yield* jsonTextSteps(todo),
  }
}

export function* pendingChange({ todo }: MongoHead): Steps<PendingChange | undefined> {
  return todo === undefined ? undefined : ((yield* jsonValueSteps(todo)) as PendingChange)
}

export function* ruleMarks({ marks = '[]' }: MongoHead): Steps<readonly RuleMark[]> {
  return (yield* jsonValueSteps(marks)) as readonly RuleMark[]
}

/** The fields of the rule set other than its rules. */
export function ruleSetHead(head: MongoHead): RuleSetHead {
  const { ruleSetId, description, strategy, caseSensitive, candidateOf, asJson } = head
  return { id: ruleSetId, ...decodeFields({ description, strategy, caseSensitive, candidateOf, asJson }) }
}

/** The latest head of each set. */
export function latestHeads(documents: readonly MongoDocument[]): Map<string, MongoHead> {
  const latest = new Map<string, MongoHead>()
  for (const head of documents as readonly MongoHead[])
    if (head.version > (latest.get(head.ruleSetId)?.version ?? 0)) latest.set(head.ruleSetId, head)
  return latest
}
