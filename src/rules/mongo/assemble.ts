import type { RuleDocument } from '../../core/rule-store.js'
import { wrongValue } from '../../validation/fields.js'
import { noMistakes, placeOf, rulesInvalid } from '../../validation/issues.js'
import type { Kept } from '../store/rule-storage.js'
import type { MongoDocument } from './database.js'
import { digestOf, fromMongo } from './document.js'
import { type MongoHead, setHead, todoOf } from './head.js'

export interface Assembled extends Kept {
  /** Somebody has changed rules past FluxGate; `version` is the one that this will get. */
  readonly isDrifted: boolean
}

/** Every set that has a head or a rule; a document that names no set is a mistake. */
export function assembleAll(
  heads: ReadonlyMap<string, MongoHead>,
  documents: readonly MongoDocument[],
  source: string,
): Map<string, Assembled> {
  const bySet = new Map<string, MongoDocument[]>([...heads.keys()].map((id) => [id, []]))
  const mistakes = noMistakes()
  for (const document of documents) {
    const { _id, ruleSetId } = document
    const list = bySet.get(String(ruleSetId)) ?? []
    if (typeof ruleSetId === 'string') bySet.set(ruleSetId, list)
    else mistakes.add(placeOf(placeOf('', String(_id)), 'ruleSetId'), wrongValue(ruleSetId, 'the id of a rule set'))
    list.push(document)
  }
  if (mistakes.count > 0) throw rulesInvalid(source, mistakes)
  return new Map([...bySet].map(([id, list]) => [id, assemble(id, heads.get(id), list)]))
}

/**
 * A set out of its head and the documents of its rules. A change that is made but not carried out on all documents counts
 * as carried out, so it does not matter how far its author has come. A rule whose document differs from what was last put
 * has been edited by others, and has a new version.
 */
export function assemble(
  ruleSetId: string,
  head: MongoHead | undefined,
  documents: readonly MongoDocument[],
): Assembled {
  const marks = new Map(head?.rules.map((mark) => [mark.id, mark]))
  let removedVersion = head?.removedVersion ?? 0
  let isDrifted = false
  const found = afterTodo(head, documents.map(fromMongo))
  const rules = found.map((rule): RuleDocument => {
    const mark = marks.get(rule.id)
    marks.delete(rule.id)
    if (mark?.digest === digestOf(rule)) return { ...rule, version: mark.version }
    isDrifted = true
    return { ...rule, version: mark === undefined ? removedVersion + 1 : mark.version + 1 }
  })
  // What is left has lost its document.
  for (const { version } of marks.values()) {
    isDrifted = true
    removedVersion = Math.max(removedVersion, version + 1)
  }
  const exists = head?.exists === true || rules.length > 0
  return {
    version: (head?.version ?? 0) + (isDrifted ? 1 : 0),
    removedVersion,
    ...(exists && { head: head?.exists ? setHead(head) : { id: ruleSetId } }),
    rules,
    isDrifted,
  }
}

function afterTodo(head: MongoHead | undefined, rules: readonly RuleDocument[]): readonly RuleDocument[] {
  const todo = head && todoOf(head)
  if (todo === undefined) return rules
  const changed = new Set([...todo.remove, ...todo.put.map(({ id }) => id)])
  return [...rules.filter(({ id }) => !changed.has(id)), ...todo.put]
}
