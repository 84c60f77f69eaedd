import type { IndexCalls } from './index-calls.js'

/** Scans a key of an index in batches. Elements that exist during the whole scan are returned at least once. */
export async function* scan(
  calls: IndexCalls,
  command: 'HSCAN' | 'ZSCAN' | 'SSCAN',
  name: string,
): AsyncGenerator<readonly Buffer[]> {
  let cursor = '0'
  do {
    const [next, rows] = (await calls.command(name, [command, cursor, 'COUNT', '500'])) as [Buffer, Buffer[]]
    yield rows
    cursor = String(next)
  } while (cursor !== '0')
}

export interface StoredRecord {
  readonly generation: string
  readonly sequence: number
  readonly document: Buffer
}

/** Parses a record: `<generation>:<sequence>:<length of entries>:<entries><document>`, as header.lua defines it. */
export function recordOf(value: Buffer): StoredRecord {
  const [header = '', generation = '', sequence = '', length = ''] =
    /^(\d+):(\d+):(\d+):/.exec(value.toString('latin1', 0, 64)) ?? []
  return { generation, sequence: Number(sequence), document: value.subarray(header.length + Number(length)) }
}
