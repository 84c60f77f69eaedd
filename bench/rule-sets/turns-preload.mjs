// @ts-check
/**
 * Loaded into a server with `--import`: measures how long its event loop is kept from other work. A timer fires at most once
 * per millisecond and never twice in a turn, so the CPU time of the main thread between two firings is that of one turn, plus
 * at most a millisecond of others. Other processes on the machine do not count.
 *
 * @typedef {object} Turns
 * @property {number} longestCpuMs CPU time of the main thread in the longest turn
 * @property {number} cpuMs CPU time of the main thread in all of them
 */
import { openSync, readSync } from 'node:fs'

const file = openSync('/proc/self/schedstat', 'r')
const bytes = Buffer.alloc(64)

/** CPU time of the main thread. */
function cpuMs() {
  // The kernel brings the figure up to date when it is asked for this one.
  process.cpuUsage()
  return Number.parseInt(bytes.toString('latin1', 0, readSync(file, bytes, 0, 64, 0)), 10) / 1e6
}

/** @type {NodeJS.Timeout | undefined} */
let timer
let startedAt = 0
let longestCpuMs = 0

function begin() {
  startedAt = cpuMs()
  longestCpuMs = 0
  let before = startedAt
  timer = setInterval(() => {
    const now = cpuMs()
    longestCpuMs = Math.max(longestCpuMs, now - before)
    before = now
  }, 1)
}

process.on('message', (message) => {
  clearInterval(timer)
  if (message === 'begin') begin()
  process.send?.({ longestCpuMs, cpuMs: cpuMs() - startedAt })
})
process.channel?.unref()
