/** Child processes that run a program of this folder, begin together and report when they are told to stop. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

const here = dirname(fileURLToPath(import.meta.url))

export interface Processes<Report> {
  /** Resolves when all of them have begun. */
  begin(): Promise<void>
  /** Asks them to stop; resolves with what they tell when all of them have ended by themselves. */
  end(): Promise<Report[]>
}

export interface ProcessOptions {
  readonly program: string
  /** One process for each, which it is given as text. */
  readonly settings: readonly object[]
  /** A program that the last one loads before its own. */
  readonly beforeLast?: string
}

export async function startProcesses<Report>(options: ProcessOptions): Promise<Processes<Report>> {
  const { program, settings, beforeLast } = options
  const children = settings.map((setting, i) => {
    const preload = beforeLast !== undefined && i === settings.length - 1 ? ['--import', join(here, beforeLast)] : []
    return fork(join(here, program), [JSON.stringify(setting)], { execArgv: preload })
  })
  onTestFinished(() => {
    for (const child of children) child.kill('SIGKILL')
  })
  const words = (): Promise<unknown> => Promise.all(children.map((child) => once(child, 'message')))
  const tell = (order: string): void => {
    for (const child of children) child.send(order)
  }
  await words()
  return {
    async begin() {
      const begun = words()
      tell('go')
      await begun
    },
    async end() {
      const reports = children.map((child) => reportOf<Report>(child))
      tell('stop')
      return Promise.all(reports)
    },
  }
}

/** What it told last, if it has ended in order. */
async function reportOf<Report>(child: ChildProcess): Promise<Report> {
  let report: unknown
  child.on('message', (message) => {
    report = message
  })
  const [status, signal] = await once(child, 'exit')
  if (status !== 0 || report === undefined) throw new Error(`a process has ended with ${status ?? signal}`)
  return report as Report
}
