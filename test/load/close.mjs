/**
 * Closes a gate and a limiter in the middle of many decisions, tells what became of them, and comes to its end if nothing
 * is left that would keep it. Its argument says where Redis is, and which processes to stop before, so that it hangs.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { createFluxGate, createLimiter } from 'fluxgate-js'
import { redisStore } from 'fluxgate-js/redis'

const { store, timeoutMs, hangs } = JSON.parse(process.argv[2] ?? '')
const bands = [{ capacity: 1_000_000, window: '1h' }]
const rules = [
  { id: 'exact', limitScope: 'USER_ID', bands },
  { id: 'leased', limitScope: 'API_KEY', consistency: 'LEASED', bands },
]
const gate = await createFluxGate({ rules: { id: 'api', rules }, store, resilience: { timeoutMs } })
const lone = redisStore(store, { timeoutMs })
const limiter = createLimiter({ capacity: 1, window: '1h', store: lone })
const report = { asked: 0, answered: 0, degradedEvents: 0, errors: {}, isCloseBounded: true }
gate.on('degraded', () => report.degradedEvents++)

async function count(decision) {
  report.asked++
  try {
    await decision
    report.answered++
  } catch (error) {
    report.errors[error.code ?? error] = (report.errors[error.code ?? error] ?? 0) + 1
    return false
  }
  return true
}

async function call(caller) {
  while (await count(gate.check({ userId: `user${caller % 5}`, apiKey: `key${caller % 3}` }))) await pause(1)
}

const callers = Array.from({ length: 50 }, (_, caller) => call(caller))
await limiter.consume('a')
const waiting = Array.from({ length: 5 }, () => count(limiter.wait('a', { maxWaitMs: 86_400_000 })))
await pause(300)
for (const pid of hangs) process.kill(pid, 'SIGSTOP')
if (hangs.length > 0) await pause(50)
const closed = Promise.all([gate.close(), limiter.close().then(() => lone.close())])
// A hung Redis never answers, so only timers of this process end the wait: the deadline of a call and 250 ms for sockets.
if (hangs.length > 0)
  report.isCloseBounded = await Promise.race([closed.then(() => true), pause(5_000, false, { ref: false })])
await closed
await Promise.all([...callers, ...waiting])
console.log(JSON.stringify(report))
