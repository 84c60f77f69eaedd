// @ts-check
/** Processes that only consume CPU time. */
import { spawn } from 'node:child_process'

/** Exits with its parent, which keeps the standard input open. */
const program = `
const { Worker } = require('node:worker_threads')
process.stdin.on('end', () => process.exit()).resume()
new Worker('for (;;);', { eval: true })
`

/**
 * @template T
 * @param {number} count
 * @param {() => Promise<T>} measure
 * @returns {Promise<T>}
 */
export async function besideBusyLoops(count, measure) {
  const children = Array.from({ length: count }, () =>
    spawn(process.execPath, ['-e', program], { stdio: ['pipe', 'ignore', 'ignore'] }),
  )
  try {
    return await measure()
  } finally {
    for (const child of children) child.kill('SIGKILL')
  }
}
