// @ts-check
/** The same overrides in two formats: as CSV, and as the resulting commands in the Redis protocol. */
import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { encodeCommand, encodeTerms, overrideHash } from '../fluxgate.mjs'

export const importedRule = {
  id: 'bench',
  rules: [{ id: 'keys', limitScope: 'API_KEY', overrides: true, bands: [{ capacity: 100, window: '1m' }] }],
}

const plans = [1, 2, 3, 4, 5].map((plan) => plan * 1_000)
const atOnce = 1_000
/** Keys in pseudo-random order. */
const keyOf = (/** @type {number} */ i, /** @type {number} */ records) => `key-${10_000_000 + ((i * 7_919) % records)}`
const planOf = (/** @type {number} */ i) => /** @type {number} */ (plans[i % plans.length])

export async function writeOverrides(
  /** @type {string} */ table,
  /** @type {string} */ protocol,
  /** @type {number} */ records,
) {
  await pipeline(Readable.from(rows(records)), createWriteStream(table))
  await pipeline(Readable.from(commands(records)), createWriteStream(protocol))
}

function* rows(/** @type {number} */ records) {
  yield 'key,action,capacity,window\n'
  for (let from = 0; from < records; from += atOnce) {
    let text = ''
    for (let i = from; i < Math.min(records, from + atOnce); i++) text += `${keyOf(i, records)},LIMIT,${planOf(i)},1m\n`
    yield text
  }
}

function* commands(/** @type {number} */ records) {
  const rule = { ruleSetId: importedRule.id, ruleId: 'keys' }
  const values = new Map(
    plans.map((capacity) => [
      capacity,
      encodeTerms({ action: 'LIMIT', bands: [band(capacity)], expiresAtMs: undefined, note: undefined }),
    ]),
  )
  for (let from = 0; from < records; from += atOnce) {
    const parts = []
    for (let i = from; i < Math.min(records, from + atOnce); i++) {
      const key = keyOf(i, records)
      const value = /** @type {Buffer} */ (values.get(planOf(i)))
      parts.push(encodeCommand(['HSET', overrideHash('fluxgate', rule, 1, key), key, value]))
    }
    yield Buffer.concat(parts)
  }
}

const band = (/** @type {number} */ capacity) => ({
  label: `${capacity}-per-1m`,
  algorithm: /** @type {const} */ ('TOKEN_BUCKET'),
  refill: /** @type {const} */ ('STEADY'),
  capacity,
  refillTokens: capacity,
  windowTicks: 60_000_000,
})
