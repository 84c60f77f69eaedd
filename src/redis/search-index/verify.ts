import { entriesOf } from './entries.js'
import type { IndexCalls } from './index-calls.js'
import { recordOf, scan } from './scan.js'
import { topListIssues } from './verify-tops.js'

/** The result of `SearchIndex.verify`. */
export interface VerifyReport {
  /** True if the index matches the records exactly. */
  readonly isSound: boolean
  /** The number of records. */
  readonly records: number
  /** The number of index entries that the records require. */
  readonly entries: number
  /** Descriptions of the first 100 problems. */
  readonly problems: readonly string[]
  /** The number of all problems. */
  readonly problemCount: number
  /** True if the index was written to during the comparison, so that reported problems may not be real. */
  readonly changedMeanwhile: boolean
}

const maxProblems = 100
/** The comparison is repeated after concurrent writes, but not indefinitely. */
const attempts = 3

export async function verifyIndex(calls: IndexCalls): Promise<VerifyReport> {
  for (let attempt = 1; ; attempt++) {
    const report = await compare(calls)
    if (report.isSound || !report.changedMeanwhile || attempt === attempts) return report
  }
}

/** The contents of each key: members as latin1 strings, with their score or an empty string. */
type Contents = Map<string, Map<string, string>>

async function compare(calls: IndexCalls): Promise<VerifyReport> {
  // Rejects if the index was created with another definition.
  await calls.run('read', 'be verified', ['COUNT'])
  const before = await calls.command('meta', ['HMGET', 'generation', 'sequence'])
  const generation = String((before as (Buffer | null)[])[0] ?? 1)
  const { expected, order } = await expectedContents(calls, generation)
  const found = await readContents(calls, generation, expected)
  const problems: string[] = []
  let entries = 0
  for (const [name, contents] of expected) {
    entries += contents.size
    problems.push(...differences(name, contents, found.get(name) ?? new Map()))
  }
  for (const [name, contents] of found)
    if (!expected.has(name) && !name.endsWith(':tops')) problems.push(...differences(name, new Map(), contents))
  problems.push(...(await recentProblems(calls, generation, order)))
  for (const [number, { kind }] of calls.definition.fields.entries())
    if (kind === 'suggest')
      problems.push(
        ...topListIssues(`${number}`, found.get(`${number}:ranks`) ?? new Map(), found.get(`${number}:tops`)),
      )
  const after = await calls.command('meta', ['HMGET', 'generation', 'sequence'])
  return {
    isSound: problems.length === 0,
    records: order.size,
    entries,
    problems: problems.slice(0, maxProblems),
    problemCount: problems.length,
    changedMeanwhile: String(before) !== String(after),
  }
}

/** Derives the expected contents of the index from the records. */
async function expectedContents(
  calls: IndexCalls,
  generation: string,
): Promise<{ expected: Contents; order: Map<string, string> }> {
  const expected: Contents = new Map()
  const put = (name: string, member: string, value: string): void => {
    const contents = expected.get(name) ?? new Map<string, string>()
    expected.set(name, contents.set(member, value))
  }
  const add = (name: string, member: string, by: number): void =>
    put(name, member, String(Number(expected.get(name)?.get(member) ?? 0) + by))
  const seen = new Set<string>()
  for await (const rows of scan(calls, 'HSCAN', 'records'))
    for (let i = 0; i < rows.length; i += 2) {
      const id = rows[i] as Buffer
      const key = id.toString('latin1')
      if (seen.has(key)) continue
      seen.add(key)
      const { sequence, document, generation: own } = recordOf(rows[i + 1] as Buffer)
      put('order', key, String(sequence))
      if (own !== generation) put('order', key, `${sequence} in generation ${own}`)
      for (const [op, bytes, number] of entriesOf(calls.definition, id, JSON.parse(String(document)))) {
        const [field, text] = [op.slice(1), bytes.toString('latin1')]
        if (op.startsWith('n')) put(`${field}:scores`, key, number)
        else if (op.startsWith('l')) put(`${field}:places`, text, '0')
        else if (op.startsWith('t')) {
          put(`${field}:tag:${text}`, key, '')
          add(`${field}:tags`, text, 1)
        } else {
          put(`${field}:terms`, text, '0')
          add(`${field}:ranks`, text, -Number(number))
        }
      }
    }
  return { expected, order: expected.get('order') ?? new Map() }
}

/** Reads the contents of all keys of the definition, and of all tags that the records or the index contain. */
async function readContents(calls: IndexCalls, generation: string, expected: Contents): Promise<Contents> {
  const found: Contents = new Map()
  const read = async (command: 'HSCAN' | 'ZSCAN' | 'SSCAN', name: string): Promise<void> => {
    const contents = new Map<string, string>()
    const step = command === 'SSCAN' ? 1 : 2
    // Key names are UTF-8, and are kept here as latin1 bytes.
    const key = `${generation}:${Buffer.from(name, 'latin1')}`
    for await (const rows of scan(calls, command, key))
      for (let i = 0; i < rows.length; i += step)
        contents.set((rows[i] as Buffer).toString('latin1'), step === 1 ? '' : numberText(rows[i + 1] as Buffer))
    if (contents.size > 0) found.set(name, contents)
  }
  await read('ZSCAN', 'order')
  for (const [number, { kind }] of calls.definition.fields.entries()) {
    if (kind === 'number') await read('ZSCAN', `${number}:scores`)
    else if (kind !== 'suggest') await read('ZSCAN', `${number}:places`)
    if (kind === 'suggest') for (const name of ['terms', 'ranks', 'tops']) await read('ZSCAN', `${number}:${name}`)
    if (kind !== 'tags') continue
    await read('HSCAN', `${number}:tags`)
    const known = [...expected.keys()].filter((name) => name.startsWith(`${number}:tag:`))
    const listed = [...(found.get(`${number}:tags`)?.keys() ?? [])].map((tag) => `${number}:tag:${tag}`)
    for (const name of new Set([...known, ...listed])) await read('SSCAN', name)
  }
  return found
}

/** Normalises the text of a number. */
const numberText = (bytes: Buffer): string => String(Number(bytes.toString()))

function differences(name: string, expected: Map<string, string>, found: Map<string, string>): string[] {
  const problems: string[] = []
  for (const [member, value] of expected) {
    const actual = found.get(member)
    if (actual === undefined) problems.push(`${name}: ${shown(member)} is missing`)
    else if (actual !== value) problems.push(`${name}: ${shown(member)} has ${actual} instead of ${value}`)
  }
  for (const member of found.keys()) if (!expected.has(member)) problems.push(`${name}: ${shown(member)} is unexpected`)
  return problems
}

const shown = (latin1: string): string => JSON.stringify(Buffer.from(latin1, 'latin1').toString())

async function recentProblems(calls: IndexCalls, generation: string, order: Map<string, string>): Promise<string[]> {
  const { recent } = calls.definition
  const list = (await calls.command(`${generation}:recent`, ['LRANGE', '0', '-1'])) as readonly Buffer[]
  const newest = [...order].sort(([, one], [, other]) => Number(other) - Number(one)).slice(0, recent)
  const expectedTerms = newest.map(([id]) => id).join('\n')
  return list.map((id) => id.toString('latin1')).join('\n') === expectedTerms
    ? []
    : ['recent: the list does not match the newest records']
}
