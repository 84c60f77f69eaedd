/** A process with a rule store: it edits on request and reports the current limit whenever that changes. */
import { createFluxGate, fileRuleStore } from 'fluxgate-js'
import { redisRuleStore } from 'fluxgate-js/redis'

const { file, uri, prefix, channel, pollingIntervalMs } = JSON.parse(process.argv[2])
const rules = file === undefined ? redisRuleStore(uri, { prefix, channel }) : fileRuleStore(file)
const gate = await createFluxGate({ rules, reload: { pollingIntervalMs } })
const tell = (word) => process.send(word)

async function report() {
  const { limit } = await gate.check({ clientIp: '192.0.2.1' }, { ruleSetId: 'api', peek: true })
  const { reload } = (await gate.health()).rules
  tell({ limit, at: Date.now(), reload })
}
gate.on('reload', ({ changed }) => {
  if (changed) void report()
})

const rule = (id, capacity) => ({ id, bands: [{ capacity, window: '1h' }] })
process.on('message', async ({ put, add, stop }) => {
  if (put !== undefined) await rules.putRule('api', rule('all', put), { by: 'a process' })
  for (const id of add ?? []) await rules.putRule('api', rule(id, 1_000), { by: 'a process' })
  if (add !== undefined) tell({ added: add.length })
  if (!stop) return
  await gate.close()
  await rules.close()
  process.disconnect()
})
await report()
