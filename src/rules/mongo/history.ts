import { jsonText, parseJson } from '../../core/json/written-json.js'
import type { HistoryEntry } from '../../core/rule-store.js'
import type { NumberedEntry } from '../store/rule-storage.js'
import type { MongoDocument } from './database.js'
import type { MongoHead } from './head.js'

/** An entry as it is kept: found by the set's version, with the documents as text, since they may say anything. */
export function historyDocument({ _id, commit, version }: MongoHead, entry: HistoryEntry): MongoDocument {
  const { version: entryVersion, before, after, ...rest } = entry
  return { _id, commit, ...rest, version, entryVersion, before: jsonText(before), after: jsonText(after) }
}

export function numberedEntry(document: MongoDocument): NumberedEntry {
  const { at, by, action, ruleSetId, ruleId, version, entryVersion, before, after } = document
  const texts = { before: parseJson(String(before)), after: parseJson(String(after)) }
  const entry = { at, by, action, ruleSetId, ruleId, version: entryVersion, ...texts } as HistoryEntry
  return { setVersion: Number(version), entry }
}
