// @ts-check
/** Requests per second of each contender: one process, 64 connections, a small JSON answer. `node bench/gateway/run.mjs [seconds] [rounds]` */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const file = (/** @type {string} */ name) => fileURLToPath(new URL(name, import.meta.url))
const [seconds = '5', rounds = '3', only = ''] = process.argv.slice(2)
const names = ['fluxgate', 'fastify', 'node-http'].filter((name) => only === '' || only.split(',').includes(name))

/** @returns {Promise<any>} */
async function message(/** @type {import('node:child_process').ChildProcess} */ child) {
  const ended = new AbortController()
  const stop = () => ended.abort(new Error('a process of the measurement ended'))
  child.once('exit', stop)
  const [value] = await once(child, 'message', { signal: ended.signal })
  child.off('exit', stop)
  return value
}

async function measure(/** @type {string} */ name) {
  const upstream = fork(file('upstream.mjs'))
  const { port: upstreamPort } = await message(upstream)
  const contender = fork(file(`contenders/${name}.mjs`), {
    env: { ...process.env, UPSTREAM_PORT: String(upstreamPort) },
  })
  const { port } = await message(contender)
  const load = fork(file('load.mjs'), [String(port), '64', seconds])
  await message(load)
  contender.send('cpu')
  const before = (await message(contender)).cpu
  const result = await message(load)
  contender.send('cpu')
  const after = (await message(contender)).cpu
  for (const child of [load, contender, upstream]) child.kill('SIGKILL')
  const micros = after.user + after.system - before.user - before.system
  return { perSecond: result.perSecond, others: result.others, cpuMicros: micros / result.answered }
}

const median = (/** @type {number[]} */ values) => [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0
/** @type {Map<string, { perSecond: number, others: number, cpuMicros: number }[]>} */
const results = new Map(names.map((name) => [name, []]))
for (let round = 0; round < Number(rounds); round++)
  for (const name of names) results.get(name)?.push(await measure(name))
const rows = [...results].map(([name, runs]) => ({
  name,
  'requests/s': median(runs.map(({ perSecond }) => perSecond)),
  'CPU µs/request': Number(median(runs.map(({ cpuMicros }) => cpuMicros)).toFixed(1)),
  'not 200': runs.reduce((sum, { others }) => sum + others, 0),
}))
console.table(rows)
