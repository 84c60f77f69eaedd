/**
 * One of several processes that ask the same gate's questions as fast as they may, with the built package. Its argument
 * says what to ask; it is told when to begin and when to stop, and tells what became of it.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { createFluxGate } from 'fluxgate-js'

const { rules, store, resilience, callers, pauseMs } = JSON.parse(process.argv[2] ?? '')
const gate = await createFluxGate({ rules, store, resilience })
const report = { wallClock: 0, asked: 0, degraded: 0, troubles: [], byRuleSet: {} }
while ((await gate.check({}, { ruleSetId: rules[0].id, peek: true })).degraded) await pause(pauseMs)
gate.on('degraded', ({ error }) => report.troubles.push(String(error)))
for (const { id } of rules) report.byRuleSet[id] = { admitted: 0, byReset: {}, refusedIn: {}, lastReset: 0 }
let isOver = false

function note({ ruleSetId, allowed, degraded, resetAt }) {
  report.asked++
  if (degraded) report.degraded++
  const tally = report.byRuleSet[ruleSetId]
  if (!allowed) {
    tally.refusedIn[resetAt] = true
    return
  }
  tally.admitted++
  tally.byReset[resetAt] = (tally.byReset[resetAt] ?? 0) + 1
  tally.lastReset = Math.max(tally.lastReset, resetAt)
}

/** By rule set: nothing was left after it was told to stop. */
const isEmpty = {}

/** Told to stop, it takes what is left without a pause, so that nothing remains that it could have had. */
async function call(ruleSetId) {
  while (!isEmpty[ruleSetId]) {
    const wasOver = isOver
    const decision = await gate.check({}, { ruleSetId })
    note(decision)
    if (!wasOver) await pause(pauseMs)
    else if (!decision.allowed) isEmpty[ruleSetId] = true
  }
}

process.once('disconnect', () => process.exit(1))
process.on('message', async (order) => {
  if (order === 'stop') isOver = true
  if (order !== 'go') return
  process.send?.('begun')
  await Promise.all(Array.from({ length: callers }, (_, i) => call(rules[i % rules.length].id)))
  await gate.close()
  process.removeAllListeners('disconnect')
  process.send?.({ ...report, wallClock: Date.now() }, () => process.disconnect())
})
process.send?.('ready')
