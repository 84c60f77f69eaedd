import { describe, expect, it } from 'vitest'
import { createLogger, type LoggerOptions, type LogLevel } from './logger.js'

function logged(
  log: (logger: ReturnType<typeof createLogger>) => void,
  options: Partial<LoggerOptions> = {},
): string[] {
  const lines: string[] = []
  const now = (): number => Date.UTC(2026, 0, 31, 12, 0, 0, 5)
  log(createLogger({ format: 'json', write: (line) => lines.push(line), now, ...options }))
  return lines
}

describe('a log', () => {
  it('is one JSON document per line, with time, level and message first', () => {
    expect(logged((log) => log.info('rules changed', { by: 'admin@10.0.0.1', traceId: 'abc' }))).toEqual([
      '{"time":"2026-01-31T12:00:00.005Z","level":"info","message":"rules changed","by":"admin@10.0.0.1","traceId":"abc"}\n',
    ])
  })

  it.each([
    ['debug', ['debug', 'info', 'warn', 'error']],
    ['warn', ['warn', 'error']],
    ['error', ['error']],
  ] as const)('at level %s writes %j', (level, expected) => {
    const lines = logged(
      (log) => {
        for (const name of ['debug', 'info', 'warn', 'error'] as LogLevel[]) log[name]('x')
      },
      { level },
    )
    expect(lines.map((line) => JSON.parse(line).level)).toEqual(expected)
  })

  it.each(['json', 'text'] as const)(
    'in %s cannot be given a second line, nor codes that a terminal obeys',
    (format) => {
      const evil = 'a\nb\r\nc\u2028d\u0085e\u001b[2Jf\u202eg\0h'
      const [line = ''] = logged((log) => log.warn(evil, { evil, nested: { evil }, error: new Error(evil) }), {
        format,
      })
      expect(line.endsWith('\n')).toBe(true)
      const controls = [...line.slice(0, -1)].filter((char) => /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(char))
      expect(controls).toEqual([])
    },
  )

  it('does not let fields override time, level and message', () => {
    const [line = ''] = logged((log) => log.error('m', { level: 'debug', message: 'other', time: 0, own: 1 }))
    expect(JSON.parse(line)).toMatchObject({ level: 'error', message: 'm', own: 1, time: '2026-01-31T12:00:00.005Z' })
  })

  it.each(['json', 'text'] as const)('in %s masks passwords in URLs', (format) => {
    const uri = 'redis://app:s3cr3t@cache:6379/0'
    const [line = ''] = logged((log) => log.error(`no answer of ${uri}`, { uri, error: new Error(uri) }), { format })
    expect(line).not.toContain('s3cr3t')
    expect(line).toContain('redis://***@cache:6379/0')
  })

  it('writes values that JSON cannot represent', () => {
    const cycle: Record<string, unknown> = {}
    cycle.self = cycle
    const lines = logged((log) => {
      log.info('big', { n: 10n })
      log.info('cycle', { cycle })
    })
    expect(JSON.parse(lines[0] as string).n).toBe('10')
    expect(lines).toHaveLength(2)
  })

  it('limits the length of a value', () => {
    const [line = ''] = logged((log) => log.info('long', { text: 'x'.repeat(1_000_000) }))
    expect(line.length).toBeLessThan(9_000)
  })

  it('is human-readable in text format', () => {
    const [line = ''] = logged((log) => log.warn('the store is "down"', { error: 'no answer', since: 5 }), {
      format: 'text',
    })
    expect(line).toMatch(/^\d\d:00:00 warn the store is "down" error="no answer" since=5\n$/)
  })
})
