// @ts-check
/** Runs a section several times, each time in a new process, and merges the findings. */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Broken } from '../measure.mjs'
import { merge } from '../results/report.mjs'

const program = fileURLToPath(new URL('section-process.mjs', import.meta.url))
/** A run that takes longer is stuck: the slowest section takes two minutes. */
const longestMinutes = 12

/**
 * @param {string} name
 * @param {number} runs
 * @param {import('./effort.mjs').Effort} effort
 * @param {(text: string) => void} progress
 * @returns {Promise<import('../results/report.mjs').Results>}
 */
export async function repeated(name, runs, effort, progress) {
  const startedAt = performance.now()
  const findings = []
  for (let run = 1; run <= runs; run++)
    findings.push(await once(name, effort, (text) => progress(`run ${run} of ${runs}, ${text}`)))
  return { ...merge(findings), minutes: (performance.now() - startedAt) / 60_000 }
}

/** @type {(name: string, effort: import('./effort.mjs').Effort, progress: (text: string) => void) => Promise<import('../results/report.mjs').Findings>} */
function once(name, effort, progress) {
  return new Promise((resolve, reject) => {
    const child = fork(program, [name], { execArgv: ['--expose-gc'], serialization: 'advanced' })
    const timer = setTimeout(() => {
      child.kill('SIGTERM')
      reject(new Broken(`Section ${name} did not finish a run within ${longestMinutes} minutes.`))
    }, longestMinutes * 60_000)
    child.on('message', (/** @type {any} */ message) => {
      if (message.progress !== undefined) progress(message.progress)
      else if (message.findings !== undefined) resolve(message.findings)
      else reject(new Broken(`Section ${name}: ${message.broken}`))
    })
    child.on('exit', (code, signal) => {
      clearTimeout(timer)
      reject(new Broken(`Section ${name} exited before it had finished (${signal ?? `status ${code}`}).`))
    })
    child.send(effort)
  })
}
