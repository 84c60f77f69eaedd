/** Processes that run editor.mjs. */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

export interface Report {
  readonly limit?: number
  readonly at: number
  readonly reload: string
  readonly added?: number
}

export interface RuleProcess {
  tell(order: { put?: number; add?: readonly string[] }): void
  /** Resolves with the first past or future report that satisfies the predicate. */
  reported(holds: (report: Report) => boolean): Promise<Report>
}

export function startRuleProcess(settings: object): RuleProcess {
  const program = fileURLToPath(new URL('editor.mjs', import.meta.url))
  const child: ChildProcess = fork(program, [JSON.stringify(settings)], { execArgv: [] })
  const reports: Report[] = []
  const waiting = new Set<() => void>()
  let failure: Error | undefined
  child.on('message', (report: Report) => {
    reports.push(report)
    for (const look of waiting) look()
  })
  child.on('exit', (status, signal) => {
    failure = new Error(`the process has ended with ${status ?? signal}`)
    for (const look of waiting) look()
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return {
    tell: (order) => void child.send(order),
    reported: (holds) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = reports.find(holds)
          if (found === undefined && failure === undefined) return
          waiting.delete(look)
          if (found === undefined) reject(failure)
          else resolve(found)
        }
        waiting.add(look)
        look()
      }),
  }
}
