import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { assemble } from '../scripts/assemble-lua.mjs'
import { consumeScript, consumeSha } from '../src/stores/consume.generated.js'

describe('the script that decides in Redis', () => {
  it('is made of the Lua files as they are', () => {
    expect(readFileSync('src/stores/consume.generated.ts', 'utf8'), 'run: node scripts/assemble-lua.mjs').toBe(
      assemble(),
    )
    expect(consumeSha).toMatch(/^[0-9a-f]{40}$/)
  })

  it('reads the time and the keys that it is given, and searches for none', () => {
    const commands = [...consumeScript.matchAll(/\bp?call\('(\w+)'/g)].map(([, name]) => name)
    expect([...new Set(commands)].sort()).toEqual([
      'DEL',
      'GETRANGE',
      'MGET',
      'PEXPIRE',
      'PEXPIREAT',
      'SET',
      'SETRANGE',
      'TIME',
    ])
    // Every call names its command, so that the list above is all of them.
    expect(consumeScript.match(/\bp?call\((?!')/g)).toBeNull()
    expect(consumeScript).not.toMatch(/\b(KEYS|SCAN)\s*['"]|redis\.(sha1hex|log|setresp|replicate)/)
  })

  it('touches keys only in the frame: algorithms are pure', () => {
    for (const name of ['exact', 'answer', 'level', 'window', 'token-bucket', 'interval-bucket', 'leaky-bucket'])
      expect(readFileSync(`src/algorithms/${name}.lua`, 'utf8')).not.toMatch(/\bcall\(|redis\./)
    for (const name of ['fixed-window', 'sliding-window-log', 'sliding-window-counter'])
      expect(readFileSync(`src/algorithms/${name}.lua`, 'utf8')).not.toMatch(/\bcall\(|redis\./)
  })

  it('fits into the literal that holds it', () => {
    expect(consumeScript).not.toMatch(/[`\\]|\$\{/)
    expect(consumeScript).not.toContain('--')
  })
})
