// @ts-check
/** Processes that do nothing but take CPU time from all others. */
import { spawn } from 'node:child_process'

/** Ends with its parent, which holds its standard input open. */
const program = `
const { Worker } = require('node:worker_threads')
process.stdin.on('end', () => process.exit()).resume()
new Worker('for (;;);', { eval: true })
`

/** @returns {() => void} what stops them */
export function startBusyLoops(/** @type {number} */ count) {
  const children = Array.from({ length: count }, () =>
    spawn(process.execPath, ['-e', program], { stdio: ['pipe', 'ignore', 'ignore'] }),
  )
  return () => {
    for (const child of children) child.kill('SIGKILL')
  }
}
