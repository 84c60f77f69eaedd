import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { assemble } from '../scripts/assemble-lua.mjs'
import { consumeScript } from '../src/stores/redis/lua/consume.generated.js'

describe('scripts for Redis', () => {
  it.each(assemble())('$path is made of the Lua files as they are', ({ path, text }) => {
    expect(readFileSync(path, 'utf8'), 'run: node scripts/assemble-lua.mjs').toBe(text)
  })

  it.each(assemble())('$path holds nothing that its literals would change', ({ text }) => {
    const scripts = [...text.matchAll(/Script = `([\s\S]*?)`\n/g)].map(([, script = '']) => script)
    expect(scripts.length).toBe(text.match(/^export const \w+Sha = '[0-9a-f]{40}'$/gm)?.length)
    for (const script of scripts) expect(script).not.toMatch(/[`\\]|\$\{|--/)
  })
})

describe('the script that decides in Redis', () => {
  it('reads the time and the keys that it is given, and searches for none', () => {
    const commands = [...consumeScript.matchAll(/\bp?call\('(\w+)'/g)].map(([, name]) => name)
    expect([...new Set(commands)].sort()).toEqual([
      'DEL',
      'GET',
      'GETRANGE',
      'HGET',
      'MGET',
      'PEXPIRE',
      'PEXPIREAT',
      'SET',
      'SETRANGE',
      'TIME',
    ])
    // Every call names its command, so that the list above is all of them.
    expect(consumeScript.match(/\bp?call\((?!')/g)).toBeNull()
    expect(consumeScript).not.toMatch(/\b(KEYS|SCAN)\s*['"]|redis\.(log|setresp|replicate)/)
  })

  it('touches keys only in the frame: algorithms are pure', () => {
    for (const name of ['exact', 'answer', 'level', 'window', 'token-bucket', 'interval-bucket', 'leaky-bucket'])
      expect(readFileSync(`src/algorithms/${name}.lua`, 'utf8')).not.toMatch(/\bcall\(|redis\./)
    for (const name of ['fixed-window', 'sliding-window-log', 'sliding-window-counter'])
      expect(readFileSync(`src/algorithms/${name}.lua`, 'utf8')).not.toMatch(/\bcall\(|redis\./)
  })
})
