import { describe, expect, it } from 'vitest'
import type { Arrival } from '../arrival.js'
import { readLines } from './lines.js'
import { recordedTraffic } from './traffic.js'

async function replay(lines: readonly string[]) {
  const { arrivals, report } = recordedTraffic([lines], 'test.log')
  const all: Arrival[] = []
  for await (const arrival of arrivals) all.push(arrival)
  return { at: all.map(({ at }) => at), report }
}

describe('recordedTraffic', () => {
  it('counts bad lines and lists the first of them, ignoring comments and empty lines', async () => {
    const { at, report } = await replay(['# times', '0', '', 'oops', '100', '?', '200'])
    expect(at).toEqual([0, 100_000, 200_000])
    expect(report).toEqual({
      format: 'timestamps',
      lines: 7,
      badLines: 2,
      badLineNumbers: [4, 6],
      withDuration: 0,
      moved: 0,
    })
  })

  it('counts bad lines beyond the ten that it lists', async () => {
    const good = Array.from({ length: 30 }, (_, i) => String(i))
    const { report } = await replay([...good, ...Array.from({ length: 25 }, () => 'oops')])
    expect(report.badLines).toBe(25)
    expect(report.badLineNumbers).toEqual([31, 32, 33, 34, 35, 36, 37, 38, 39, 40])
  })

  it('counts requests with a duration', async () => {
    const lines = ['{"time":1000,"durationMs":12.5}', '{"time":2000}', '{"time":3000,"durationMs":0}']
    expect((await replay(lines)).report).toMatchObject({ format: 'JSON lines', withDuration: 2 })
  })

  it('does not count a CSV header as a bad line', async () => {
    const { at, report } = await replay(['time,path', '1000,/', '2000,/'])
    expect(at).toEqual([1_000_000, 2_000_000])
    expect(report.badLines).toBe(0)
  })

  it('sorts arrivals that are slightly out of order, and moves and counts those that are far out of order', async () => {
    expect((await replay(['300', '100', '200'])).at).toEqual([100_000, 200_000, 300_000])
    const many = Array.from({ length: 20_000 }, (_, i) => String(i + 1_000))
    const { at, report } = await replay([...many, '5'])
    expect(report.moved).toBe(1)
    expect(at).toHaveLength(20_001)
    expect(at).toEqual([...at].sort((a, b) => a - b))
  })

  it('lists the supported formats if the format is unknown', async () => {
    await expect(replay(['<html>', '<body>'])).rejects.toMatchObject({ code: 'FLUXGATE_ARGUMENT_INVALID' })
    await expect(replay(['<html>', '<body>'])).rejects.toThrow(/^test\.log has an unknown format\. .* access log\.$/)
  })

  it('yields no arrivals for an empty file', async () => {
    expect(await replay([])).toMatchObject({ at: [], report: { lines: 0, format: 'empty' } })
  })
})

describe('readLines', () => {
  const linesOf = async (...chunks: (string | Uint8Array)[]): Promise<string[]> => {
    const lines: string[] = []
    for await (const batch of readLines(chunks.map((chunk) => Buffer.from(chunk as string)))) lines.push(...batch)
    return lines
  }

  it('joins lines and characters that are split across chunks', async () => {
    const [head, tail] = [Buffer.from('é').subarray(0, 1), Buffer.from('é').subarray(1)]
    expect(await linesOf('a', 'b\r\nc', head, tail, '\n\nd')).toEqual(['ab', 'cé', '', 'd'])
    expect(await linesOf('a\n')).toEqual(['a'])
  })

  it('truncates an endless line', async () => {
    const lines = await linesOf(...Array.from({ length: 40 }, () => 'x'.repeat(10_000)), '\nnext')
    expect(lines.map((line) => line.length)).toEqual([65_536, 4])
  })
})
