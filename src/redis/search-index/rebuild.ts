import { FluxGateError, messageOf, type ValidationIssue } from '../../core/errors.js'
import { mostFields } from './definition.js'
import { entriesOf } from './entries.js'
import type { IndexCalls } from './index-calls.js'
import { recordOf, scan } from './scan.js'

/** The result of `SearchIndex.rebuild`. */
export interface RebuildReport {
  /** The number of records that were scanned. */
  readonly records: number
}

const batchSize = 100
const maxIssues = 100

/**
 * Rebuilds the index in a new, empty generation. From then on all edits write to it. Records of older generations are
 * reindexed one by one, unless they have changed in the meantime. Edits can therefore continue, and no record is indexed
 * twice.
 */
export async function rebuildIndex(calls: IndexCalls): Promise<RebuildReport> {
  const { definition } = calls
  const what = 'be rebuilt'
  const generation = String(await calls.run('turn', what, ['BEGIN']))
  const issues: ValidationIssue[] = []
  let records = 0

  async function reindex(id: Buffer, value: Buffer): Promise<void> {
    const { document, generation: own } = recordOf(value)
    if (own === generation) return
    try {
      const entries = entriesOf(definition, id, JSON.parse(String(document)))
      await calls.run('edit', what, ['REINDEX', id, document, document, '0', '0', '', ...entries.flat()])
    } catch (error) {
      if (!(error instanceof FluxGateError && error.code === 'FLUXGATE_ARGUMENT_INVALID')) throw error
      if (issues.length < maxIssues) issues.push({ path: String(id), message: messageOf(error) })
    }
  }

  for await (const rows of scan(calls, 'HSCAN', 'records')) {
    for (let i = 0; i < rows.length; i += 2 * batchSize) {
      const part = rows.slice(i, i + 2 * batchSize)
      records += part.length / 2
      await Promise.all(part.flatMap((id, j) => (j % 2 === 0 ? [reindex(id, part[j + 1] as Buffer)] : [])))
    }
  }
  if (issues.length > 0)
    throw new FluxGateError(
      'FLUXGATE_ARGUMENT_INVALID',
      `The search index "${definition.name}" has records that do not fit its fields; errors lists them. Change or remove them, and call rebuild() again.`,
      { errors: issues },
    )
  await calls.run('turn', what, ['END', generation, String(definition.recent)])
  await sweep(calls)
  return { records }
}

/** Removes the keys of older generations. */
export async function sweep(calls: IndexCalls): Promise<void> {
  const [oldest, current] = (await calls.command('meta', ['HMGET', 'oldest', 'generation'])) as (Buffer | null)[]
  if (oldest === null || oldest === undefined) return
  for (let generation = Number(oldest); generation < Number(current); generation++) {
    for (let field = 0; field < mostFields; field++) {
      const name = `${generation}:${field}`
      for await (const rows of scan(calls, 'HSCAN', `${name}:tags`))
        for (const [i, tag] of rows.entries()) if (i % 2 === 0) await calls.command(`${name}:tag:${tag}`, ['UNLINK'])
      for (const kind of ['scores', 'places', 'tags', 'terms', 'ranks', 'tops'])
        await calls.command(`${name}:${kind}`, ['UNLINK'])
    }
    for (const name of ['order', 'recent']) await calls.command(`${generation}:${name}`, ['UNLINK'])
  }
  await calls.run('turn', 'be cleared', ['SWEPT', String(current)])
}
