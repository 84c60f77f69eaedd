/** Runs the built program as a process in a temporary directory and collects its output. */
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
  /** Waits for the condition; `description` is used in the error. */
  until(description: string, condition: () => boolean | Promise<boolean>): Promise<void>
}

export interface Workspace {
  file(name: string): string
  /** Replaces the file atomically, as editors do. */
  write(name: string, document: unknown): void
  /** `command` starts the program; by default the program itself. */
  launch(args: readonly string[], env?: NodeJS.ProcessEnv, command?: readonly string[]): Running
  /** Resolves when the program listens. */
  start(...launch: Parameters<Workspace['launch']>): Promise<Running>
}

/** A temporary directory for one test. Programs started in it are killed when the test ends. */
export function tempWorkspace(): Workspace {
  const directory = mkdtempSync(join(tmpdir(), 'fluxgate-e2e-'))
  const children: ChildProcess[] = []
  onTestFinished(() => {
    for (const child of children) child.kill('SIGKILL')
    rmSync(directory, { recursive: true, force: true })
  })
  const file = (name: string): string => join(directory, name)
  const launch: Workspace['launch'] = (args, env = {}, [name = '', ...before] = program) => {
    const inherited = Object.entries(process.env).filter(([name]) => !/^FLUXGATE_|^NO_COLOR$|^NODE_/.test(name))
    const child = spawn(name, [...before, ...args], {
      cwd: directory,
      // Port 0: the API must not conflict with other programs on this machine.
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
    async start(...options) {
      const running = launch(...options)
      await running.until('the program listens', () => running.stdout().includes('Press Ctrl-C to stop.'))
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
    async until(description, condition) {
      await eventually(description, condition).catch((cause: unknown) => {
        throw new Error(`Timed out waiting until ${description}\n${output.stdout}\n${output.stderr}`, { cause })
      })
    },
  }
}
