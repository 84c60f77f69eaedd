/** The built program as a process of its own, in a directory of its own, watched from outside. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { eventually } from '../fixtures/eventually.js'
import { root } from './command-line.js'

/** The command, without arguments. */
export const program: readonly string[] = [process.execPath, join(root, 'dist', 'command', 'main.js')]

export interface Running {
  readonly process: ChildProcess
  readonly pid: number
  /** URL of the gateway, or of the server if there is no gateway. Available once the program has printed it. */
  readonly url: string
  /** URL of the server. */
  readonly api: string
  stdout(): string
  stderr(): string
  /** The exit status, or the signal that ended it. */
  readonly ended: Promise<number | string | null>
  until(what: string, condition: () => boolean | Promise<boolean>): Promise<void>
}

export interface Workplace {
  file(name: string): string
  /** As editors do it: whole, and at once. */
  write(name: string, document: unknown): void
  /** `command` is what starts the program, if that is not itself. */
  launch(args: readonly string[], env?: NodeJS.ProcessEnv, command?: readonly string[]): Running
  /** Resolves when it listens. */
  start(...given: Parameters<Workplace['launch']>): Promise<Running>
}

/** For one test; everything that was started ends with it. */
export function workplace(): Workplace {
  const directory = mkdtempSync(join(tmpdir(), 'fluxgate-e2e-'))
  const children: ChildProcess[] = []
  onTestFinished(() => {
    for (const child of children) child.kill('SIGKILL')
    rmSync(directory, { recursive: true, force: true })
  })
  const file = (name: string): string => join(directory, name)
  const launch: Workplace['launch'] = (args, env = {}, [name = '', ...before] = program) => {
    const inherited = Object.entries(process.env).filter(([name]) => !/^FLUXGATE_|^NO_COLOR$|^NODE_/.test(name))
    const child = spawn(name, [...before, ...args], {
      cwd: directory,
      // Whatever else runs here, the API finds a port.
      env: { ...Object.fromEntries(inherited), FLUXGATE_SERVER_PORT: '0', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    children.push(child)
    return watched(child)
  }
  return {
    file,
    write(name, document) {
      writeFileSync(file(`${name}.next`), typeof document === 'string' ? document : JSON.stringify(document))
      renameSync(file(`${name}.next`), file(name))
    },
    launch,
    async start(...given) {
      const running = launch(...given)
      await running.until('it listens', () => running.stdout().includes('Press Ctrl-C to stop.'))
      return running
    },
  }
}

function watched(child: ChildProcess): Running {
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      output[name] += text
    })
  return {
    process: child,
    pid: child.pid ?? 0,
    get url() {
      return /http:\/\/[\d.]+:\d+/.exec(output.stdout)?.[0] ?? ''
    },
    get api() {
      return /API listens on (http\S+)/.exec(output.stdout)?.[1] ?? ''
    },
    stdout: () => output.stdout,
    stderr: () => output.stderr,
    ended: new Promise((resolve) => child.once('close', (status, signal) => resolve(status ?? signal))),
    async until(what, condition) {
      await eventually(what, condition).catch((cause: unknown) => {
        throw new Error(`${what}: in vain\n${output.stdout}\n${output.stderr}`, { cause })
      })
    },
  }
}
