import { FluxGateError, type Mistake, messageOf } from '../../core/errors.js'
import { mostFields } from './definition.js'
import { entriesOf } from './entries.js'
import type { IndexCalls } from './index-calls.js'
import { recordOf, scan } from './scan.js'

export interface RebuildReport {
  /** How many records there were to look at. */
  readonly records: number
}

const atOnce = 100
const mostMistakes = 100

/**
 * The index begins a new, empty generation, into which every edit writes from then on; records that still belong to an older
 * one are taken over, one by one, each if it is still the same. So edits need not stop, and nothing is done twice.
 */
export async function rebuildIndex(calls: IndexCalls): Promise<RebuildReport> {
  const { definition } = calls
  const what = 'be rebuilt'
  const generation = String(await calls.run('turn', what, ['BEGIN']))
  const mistakes: Mistake[] = []
  let records = 0

  async function takeOver(id: Buffer, value: Buffer): Promise<void> {
    const { document, generation: own } = recordOf(value)
    if (own === generation) return
    try {
      const entries = entriesOf(definition, id, JSON.parse(String(document)))
      await calls.run('edit', what, ['REINDEX', id, document, document, '0', '0', '', ...entries.flat()])
    } catch (error) {
      if (!(error instanceof FluxGateError && error.code === 'FLUXGATE_ARGUMENT_INVALID')) throw error
      if (mistakes.length < mostMistakes) mistakes.push({ path: String(id), message: messageOf(error) })
    }
  }

  for await (const rows of scan(calls, 'HSCAN', 'records')) {
    for (let i = 0; i < rows.length; i += 2 * atOnce) {
      const part = rows.slice(i, i + 2 * atOnce)
      records += part.length / 2
      await Promise.all(part.flatMap((id, j) => (j % 2 === 0 ? [takeOver(id, part[j + 1] as Buffer)] : [])))
    }
  }
  if (mistakes.length > 0)
    throw new FluxGateError(
      'FLUXGATE_ARGUMENT_INVALID',
      `Records of the search index "${definition.name}" do not fit its fields: change or remove them, and rebuild it again.`,
      { errors: mistakes },
    )
  await calls.run('turn', what, ['END', generation, String(definition.recent)])
  await sweep(calls)
  return { records }
}

/** Removes what older generations have left. */
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
