import { realpath, stat } from 'node:fs/promises'
import { FluxGateError, messageOf } from '../../core/errors.js'
import { inSlices } from '../../core/scheduling/steps.js'
import { formatOf } from '../document/document.js'
import { issueLocator } from '../document/locate-issues.js'
import {
  codeOf,
  digestOfFile,
  digestSteps,
  encodeSteps,
  readIfPresent,
  readRulesFile,
  unreadable,
} from '../document/rules-file.js'
import { fileFingerprint, watchFile } from '../document/watch-file.js'
import { immutableRuleSets } from '../schema/parse-rules.js'
import { ruleSetsIn } from '../store/document-sets.js'
import { copyRuleSet, type ValidatedRuleSet } from '../store/rule-document.js'
import type { ExistingRuleSet, RuleStorage } from '../store/rule-storage.js'
import { applyToDocument } from './apply-to-document.js'
import { appendHistory, readHistory } from './history.js'
import { withFileLock } from './lock.js'
import { replaceFile } from './replace-file.js'
import { rewriteSteps } from './rewrite/long-document.js'
import { type RulesText, rulesTextSteps } from './rewrite/rules-text.js'
import { encodeRecords, noRuleSet, parseRecords, recordManualEdits, type VersionRecords } from './version-records.js'

/** Rules in one file. `file` is its absolute path, `shown` how it appears in messages. */
export function fileStorage(file: string, shown: string): RuleStorage {
  const format = formatOf(file)
  const [versionsFile, historyFile] = [`${file}.versions.json`, `${file}.history.jsonl`]
  let loaded: string | undefined
  let parsed: (RulesText & { readonly digest: string }) | undefined
  /** Version records that match a document. */
  let agreed:
    | { readonly mark: string | undefined; readonly records: VersionRecords; readonly document: unknown }
    | undefined
  let seen: { readonly mark: string; readonly records: VersionRecords } | undefined

  /** Caches the parsed document, because parsing a long text delays requests. */
  async function readDocument() {
    const { text, digest } = await readRulesFile(file, shown)
    if (parsed?.digest === digest) return parsed
    const read = await inSlices(rulesTextSteps(text, format, shown))
    await inSlices(immutableRuleSets(read.document, shown, issueLocator(text, format)))
    parsed = { digest, ...read }
    return parsed
  }

  /** Reads the file, and the records updated for manual edits. */
  async function readState() {
    const read = await readDocument()
    const { document } = read
    const mark = await fileFingerprint(versionsFile)
    if (agreed !== undefined && agreed.document === document && agreed.mark === mark)
      return { read, records: agreed.records, entries: [] }
    const bytes = await readIfPresent(versionsFile)
    const at = (await stat(file)).mtime.toISOString()
    const checked: ValidatedRuleSet[] = []
    for (const ruleSet of ruleSetsIn(document)) checked.push(await inSlices(copyRuleSet(ruleSet)))
    const state = await inSlices(recordManualEdits(await inSlices(parseRecords(bytes)), checked, at))
    if (state.entries.length === 0) agreed = { mark, records: state.records, document }
    return { read, ...state }
  }

  async function writeRecords(records: VersionRecords, document: unknown): Promise<void> {
    await replaceFile(versionsFile, await inSlices(encodeRecords(records)), async () => true)
    agreed = { mark: await fileFingerprint(versionsFile), records, document }
  }

  /** Writes updated records, so that a version that was returned once is not reused after the next manual edit. */
  async function readNoted(): Promise<VersionRecords> {
    const { records, entries } = await readState()
    if (entries.length === 0) return records
    try {
      return await writing(async () => {
        const state = await readState()
        await writeRecords(state.records, state.read.document)
        await appendHistory(historyFile, state.entries)
        return state.records
      })
    } catch (error) {
      // In a read-only directory no edit can rely on these versions.
      if (error instanceof FluxGateError && error.code === 'FLUXGATE_RULES_READ_ONLY') return records
      throw error
    }
  }

  /** Returns the records, and reads them again only if one of the files was touched. */
  async function currentRecords(): Promise<VersionRecords> {
    const mark = await marks()
    if (seen?.mark === mark) return seen.records
    const records = await readNoted()
    // If a file was written in between, the next call reads again.
    seen = { mark: (await marks()) === mark ? mark : '', records }
    return records
  }
  const marks = async (): Promise<string> => `${await fileFingerprint(file)} ${await fileFingerprint(versionsFile)}`

  /** Runs a write with the lock, and converts system errors to errors about the file. */
  async function writing<T>(write: () => Promise<T>): Promise<T> {
    try {
      return await withFileLock(`${file}.lock`, write)
    } catch (error) {
      if (error instanceof FluxGateError) throw error
      if (['EACCES', 'EPERM', 'EROFS'].includes(String(codeOf(error)))) throw readOnly(shown, error)
      throw unreadable(`${shown} could not be written: ${messageOf(error)}.`, error)
    }
  }

  return {
    source: shown,
    async loadDocument() {
      const { document, digest } = await readDocument()
      loaded = digest
      return document
    },
    async read(ruleSetId) {
      return (await currentRecords()).get(ruleSetId) ?? noRuleSet
    },
    async readAll() {
      return [...(await currentRecords()).values()].filter(
        (stored): stored is ExistingRuleSet => stored.head !== undefined,
      )
    },
    async commit(change) {
      await checkWritable(file, shown)
      return writing(async () => {
        const { read, records, entries } = await readState()
        if ((records.get(change.ruleSetId) ?? noRuleSet).version !== change.from) return false
        const document = await inSlices(applyToDocument(read.document, change))
        const next = await inSlices(rewriteSteps(read, format, document))
        const chunks = await inSlices(encodeSteps(next.text))
        // Replaces the target of a symbolic link, not the link.
        const target = await realpath(file)
        const isUntouched = async () => (await digestOfFile(file, shown)) === read.digest
        if (next.text !== read.text && !(await replaceFile(target, chunks, isUntouched))) return false
        parsed = { digest: await inSlices(digestSteps(chunks)), ...next }
        await writeRecords(new Map([...records, [change.ruleSetId, change.after]]), next.document)
        const entry = { setVersion: change.after.version, entry: change.entry }
        await appendHistory(historyFile, [...entries, entry])
        return true
      })
    },
    history: (ruleSetId, below, limit) => readHistory(historyFile, ruleSetId, below, limit),
    watch(onChange, onError) {
      const digest = () => digestOfFile(file, shown)
      return watchFile({ file, shown, digest, known: loaded, onChange, onError })
    },
    async close() {},
  }
}

/** Rejects read-only files even for root, which could write them. */
async function checkWritable(file: string, shown: string): Promise<void> {
  const info = await stat(file).catch(() => undefined)
  if (info !== undefined && (info.mode & 0o222) === 0) throw readOnly(shown)
}

const readOnly = (shown: string, cause?: unknown): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_RULES_READ_ONLY',
    `This process has no permission to write ${shown}. Allow it to write the file and its directory, or edit the file manually.`,
    cause === undefined ? {} : { cause },
  )
