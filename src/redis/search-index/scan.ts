import type { IndexCalls } from './index-calls.js'

/** Everything that is under one of the names of an index, in portions. What is there all the while comes at least once. */
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

/** `<generation>:<sequence>:<length of entries>:<entries><document>`, as header.lua has it. */
export function recordOf(value: Buffer): StoredRecord {
  const [header = '', generation = '', sequence = '', length = ''] =
    /^(\d+):(\d+):(\d+):/.exec(value.toString('latin1', 0, 64)) ?? []
  return { generation, sequence: Number(sequence), document: value.subarray(header.length + Number(length)) }
}
