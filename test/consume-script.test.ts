import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { assemble } from '../scripts/assemble-lua.mjs'
import { consumeScript } from '../src/stores/redis/lua/consume.generated.js'

describe('scripts for Redis', () => {
  it.each(assemble())('$path is up to date with the Lua files', ({ path, text }) => {
    expect(readFileSync(path, 'utf8'), 'run: node scripts/assemble-lua.mjs').toBe(text)
  })

  it.each(assemble())('$path contains no characters that its template literals would change', ({ text }) => {
    const scripts = [...text.matchAll(/^ {2}source: `([\s\S]*?)`,\n/gm)].map(([, script = '']) => script)
    expect(scripts.length).toBe(text.match(/^ {2}sha: '[0-9a-f]{40}',$/gm)?.length)
    for (const script of scripts) expect(script).not.toMatch(/[`\\]|\$\{|--/)
  })
})

describe('the decision script', () => {
  it('uses only the time and the given keys, and scans for no others', () => {
    const commands = [...consumeScript.source.matchAll(/\bp?call\('(\w+)'/g)].map(([, name]) => name)
    expect([...new Set(commands)].sort()).toEqual([
      'DEL',
      'GET',
      'GETRANGE',
      'HGET',
      'MGET',
      'MSET',
      'PEXPIRE',
      'PEXPIREAT',
      'PTTL',
      'SET',
      'SETRANGE',
      'TIME',
    ])
    // Every call has a literal command name, so the list above is complete.
    expect(consumeScript.source.match(/\bp?call\((?!')/g)).toBeNull()
    expect(consumeScript.source).not.toMatch(/\b(KEYS|SCAN)\s*['"]|redis\.(log|setresp|replicate)/)
  })

  it('accesses keys only outside the algorithms, which are pure', () => {
    for (const name of ['exact', 'answer', 'level', 'window', 'token-bucket', 'interval-bucket', 'leaky-bucket'])
      expect(readFileSync(`src/algorithms/${name}.lua`, 'utf8')).not.toMatch(/\bcall\(|redis\./)
    for (const name of ['fixed-window', 'sliding-window-log', 'sliding-window-counter'])
      expect(readFileSync(`src/algorithms/${name}.lua`, 'utf8')).not.toMatch(/\bcall\(|redis\./)
  })
})
