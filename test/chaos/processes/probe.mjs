// @ts-check
/**
 * Loaded before a process under test: reports when its event loop ran, and blocks it on command. It ends the process with
 * the harness.
 */
const sliceMs = 5
const reportMs = 100

/** @type {number[]} */
let ticks = []
let reportedAt = performance.now()

setInterval(() => {
  ticks.push(Number(process.hrtime.bigint() / 1_000n))
  if (performance.now() - reportedAt < reportMs || !process.connected) return
  reportedAt = performance.now()
  process.send?.({ ticks })
  ticks = []
}, sliceMs).unref()

process.on('message', (/** @type {{ stallMs?: number }} */ { stallMs }) => {
  const until = performance.now() + (stallMs ?? 0)
  while (performance.now() < until);
})
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
process.channel?.unref()
