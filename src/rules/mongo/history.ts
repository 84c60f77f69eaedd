import type { HistoryEntry } from '../../core/contracts/rule-store.js'
import { jsonTextSteps } from '../../core/json/json-steps.js'
import type { Steps } from '../../core/scheduling/steps.js'
import { jsonValueSteps } from '../document/json-text.js'
import type { NumberedEntry } from '../store/rule-storage.js'
import type { MongoDocument } from './database.js'
import type { MongoHead } from './head.js'

/** Converts a history entry. Its documents are stored as JSON text, because they may contain any value. */
export function* historyDocument({ _id, commit, version }: MongoHead, entry: HistoryEntry): Steps<MongoDocument> {
  const { version: entryVersion, before, after, ...rest } = entry
  const texts = { before: yield* jsonTextSteps(before), after: yield* jsonTextSteps(after) }
  return { _id, commit, ...rest, version, entryVersion, ...texts }
}

export function* numberedEntry(document: MongoDocument): Steps<NumberedEntry> {
  const { at, by, action, ruleSetId, ruleId, version, entryVersion, before, after } = document
  const texts = { before: yield* jsonValueSteps(String(before)), after: yield* jsonValueSteps(String(after)) }
  const entry = { at, by, action, ruleSetId, ruleId, version: entryVersion, ...texts } as HistoryEntry
  return { setVersion: Number(version), entry }
}
