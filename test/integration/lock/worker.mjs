/**
 * One of several processes that enter critical sections with the built package until they are killed. It reports each
 * section by the monotonic clock that all processes of a machine share.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { guardedScript, redisLock } from 'fluxgate-js/lock'
import { Redis } from 'ioredis'

const { port, prefix, names, ttlMs, withoutExclusion } = JSON.parse(process.argv[2] ?? '')
const client = new Redis({ port })
const lock = redisLock(withoutExclusion ? excludingNobody(new Redis({ port })) : client, { prefix, ttlMs })

/** A resource that checks fences: a reader becomes the newest owner, and older owners can no longer read or write. */
client.defineCommand('readLedger', {
  numberOfKeys: 3,
  lua: `if tonumber(ARGV[1]) < tonumber(redis.call('GET', KEYS[1]) or 0) then return false end
    redis.call('SET', KEYS[1], ARGV[1])
    return redis.call('LLEN', KEYS[2])`,
})
client.defineCommand('writeLedger', {
  numberOfKeys: 3,
  lua: `if tonumber(ARGV[1]) < tonumber(redis.call('GET', KEYS[1]) or 0) then return false end
    redis.call('SET', KEYS[1], ARGV[1])
    return redis.call('RPUSH', KEYS[2], ARGV[1] .. ' ' .. ARGV[2])`,
})
/** A resource that is guarded by the lock itself. */
const writeGuarded = guardedScript("return redis.call('RPUSH', KEYS[1], ARGV[1] .. ' ' .. ARGV[2])")

/** @type {{ name: string, fence: number, from: string, to: string }[]} */
let visits = []
const now = () => process.hrtime.bigint().toString()

async function visit(name) {
  const oversleeps = Math.random() < 0.002
  const hold = await lock.acquire(name, { waitMs: 30_000, watchdog: !oversleeps })
  const { fence } = hold
  const from = now()
  const keys = [`${prefix}:fence:{${name}}`, `${prefix}:ledger:{${name}}`, `${prefix}:guarded:{${name}}`]
  const lines = await client.readLedger(...keys, fence)
  const guarded = await client.llen(keys[2])
  if (oversleeps) await pause(ttlMs * 1.5)
  else if (Math.random() < 0.2) await pause(1)
  if (lines !== null) await client.writeLedger(...keys, fence, lines + 1)
  await hold.run(writeGuarded, { keys: [keys[2]], args: [fence, guarded + 1] }).catch(ifLost)
  const to = now()
  // Checked afterwards, so the answer covers the whole section.
  if (hold.isHeld) visits.push({ name, fence, from, to })
  await hold.release()
}

const expected = ['FLUXGATE_LOCK_LOST', 'FLUXGATE_LOCK_TIMEOUT', 'FLUXGATE_STORE_TIMEOUT', 'FLUXGATE_STORE_FAILED']
function ifLost(error) {
  if (!expected.includes(error.code)) throw error
}

/** Removes the exclusion from the scripts: every grant replaces the one before it. */
function excludingNobody(client) {
  const create = client.createBuiltinCommand.bind(client)
  client.createBuiltinCommand = (name) => {
    const { buffer } = create(name)
    const changed = async (args) => {
      if (name === 'EVALSHA') throw new Error('NOSCRIPT: texts alone are changed here')
      const [text, ...rest] = args
      const isAcquire = name === 'EVAL' && text.includes("'NX', ")
      return buffer.call(client, isAcquire ? [withoutCheck(text), ...rest] : args)
    }
    return { buffer: changed }
  }
  return client
}

function withoutCheck(text) {
  const changed = text.replace('elseif value then', 'elseif false then').replace("'NX', ", '')
  if (changed.length !== text.length + 'false'.length - 'value'.length - "'NX', ".length) throw new Error('not changed')
  return changed
}

async function work() {
  for (;;) await visit(names[Math.floor(Math.random() * names.length)]).catch(ifLost)
}

process.once('disconnect', () => process.exit(1))
setInterval(() => {
  process.send?.(visits)
  visits = []
}, 20)
await Promise.all([work(), work(), work()])
