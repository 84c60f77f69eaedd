/** The gateway under test: the built program as a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '../../fixtures/eventually.js'

export interface SubjectOptions {
  /** The folder of this repository. */
  readonly root: string
  readonly config: object
  readonly nodeArgs?: readonly string[]
}

/** None of them outlives this process. */
const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

export class GatewaySubject {
  readonly child: ChildProcess
  readonly #directory: string
  #stdout = ''
  #stderr = ''

  static async start(options: SubjectOptions): Promise<GatewaySubject> {
    const subject = new GatewaySubject(options)
    await eventually('the gateway listens', () => {
      if (!subject.isRunning) throw new Error(subject.output)
      return subject.#stdout.includes('Press Ctrl-C to stop.')
    })
    subject.#stderr = ''
    return subject
  }

  private constructor({ root, config, nodeArgs = [] }: SubjectOptions) {
    this.#directory = mkdtempSync(join(tmpdir(), 'fluxgate-batteries-'))
    const file = join(this.#directory, 'fluxgate.json')
    writeFileSync(file, JSON.stringify(config))
    const inherited = Object.entries(process.env).filter(([name]) => !/^FLUXGATE_|^NODE_/.test(name))
    const program = join(root, 'dist', 'command', 'main.js')
    this.child = spawn(process.execPath, [...nodeArgs, program, 'gateway', '--port', '0', '--config', file], {
      cwd: this.#directory,
      env: Object.fromEntries(inherited),
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    running.add(this.child)
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout = (this.#stdout + text).slice(-16_000)
    })
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-16_000)
    })
  }

  get port(): number {
    return Number(/listens on http:\/\/[\d.]+:(\d+)/.exec(this.#stdout)?.[1])
  }

  get isRunning(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null
  }

  get output(): string {
    return `${this.#stdout}\n${this.#stderr}`.trim()
  }

  /** Warnings and stacks since the last call: a gateway prints none, whatever it receives. */
  takeComplaints(): string {
    const complaints = this.#stderr
    this.#stderr = ''
    return complaints.trim()
  }

  async stop(): Promise<void> {
    if (this.isRunning) {
      const exit = once(this.child, 'exit')
      this.child.kill('SIGKILL')
      await exit
    }
    running.delete(this.child)
    rmSync(this.#directory, { recursive: true, force: true })
  }
}
