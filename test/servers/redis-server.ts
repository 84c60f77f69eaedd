/**
 * Real Redis servers for tests, benchmarks and experiments, each with its own port and temporary directory. They store
 * nothing on disk unless configured to, and never outlive the process that started them. Plain JavaScript loads this
 * file with `runnerImport` of vite.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '../fixtures/eventually.js'
import { freePort } from './free-port.js'
import { type GuardedProcess, launchGuarded } from './guarded-process.js'
import { raisePriority } from './raise-priority.js'
import { type Address, type Argument, callOnce, type Reply } from './resp.js'
import type { KeyPair } from './self-signed.js'

export interface RedisOptions {
  /** Lines of redis.conf, such as `maxmemory 2mb`; they take precedence over those of the harness. */
  readonly config?: readonly string[]
  readonly port?: number
  readonly password?: string
  /** The server then accepts only TLS, without client certificates. */
  readonly tls?: KeyPair
  /** Another server program, such as Valkey. */
  readonly binary?: string
  readonly sentinel?: boolean
}

export interface RedisServer {
  readonly host: string
  readonly port: number
  readonly uri: string
  /** Changes with a restart. */
  readonly pid: number
  readonly directory: string
  readonly address: Address
  isRunning(): boolean
  /** Runs one command on a new connection. */
  call(...command: Argument[]): Promise<Reply>
  /** Kills it with SIGKILL, as in a power failure. The files are kept for a restart. */
  kill(): Promise<void>
  /** Shuts it down if it is running, and starts it on the same port with the same files. Resolves when it answers. */
  restart(): Promise<void>
  /** Stops the process with SIGSTOP; its connections stay open. */
  pause(): void
  resume(): void
  /** Stops it for good and removes its files. */
  stop(): Promise<void>
}

const host = '127.0.0.1'

export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await startAt(options.port ?? (await freePort()), options)
    } catch (error) {
      // Another process may take the port before the server binds it.
      const portTaken = /in use|failed listening/i.test(String(error))
      if (options.port !== undefined || !portTaken || attempt === 5) throw error
    }
  }
}

async function startAt(port: number, options: RedisOptions): Promise<RedisServer> {
  const { password, tls, binary = 'redis-server' } = options
  const directory = mkdtempSync(join(tmpdir(), 'fluxgate-redis-'))
  const address: Address = { host, port, password, trustedCertificate: tls?.cert }
  const configFile = writeFiles(directory, port, options)
  const command = [binary, configFile, ...(options.sentinel ? ['--sentinel'] : [])]
  const launch = async () => {
    const launched = await launchGuarded(command, directory)
    try {
      raisePriority(launched.pid)
      await answering(launched, address)
      return launched
    } catch (error) {
      await launched.end('keep')
      throw error
    }
  }
  let server: GuardedProcess
  try {
    server = await launch()
  } catch (error) {
    rmSync(directory, { recursive: true, force: true })
    throw error
  }
  const signal = (name: NodeJS.Signals) => {
    if (!server.isRunning()) throw new Error(`the server at port ${port} is not running`)
    process.kill(server.pid, name)
  }
  return {
    host,
    port,
    uri: `${tls ? 'rediss' : 'redis'}://${password === undefined ? '' : `:${encodeURIComponent(password)}@`}${host}:${port}`,
    get pid() {
      return server.pid
    },
    directory,
    address,
    isRunning: () => server.isRunning(),
    call: (...parts) => callOnce(address, ...parts),
    kill: () => server.end('keep'),
    async restart() {
      if (server.isRunning()) {
        signal('SIGCONT')
        signal('SIGTERM')
        await eventually(`the server at port ${port} has exited`, () => !server.isRunning())
      }
      await server.end('keep')
      server = await launch()
    },
    pause: () => signal('SIGSTOP'),
    resume: () => signal('SIGCONT'),
    async stop() {
      await server.end('remove')
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** The configuration is a file, because servers that take part in a failover rewrite it. */
function writeFiles(directory: string, port: number, { config = [], password, tls }: RedisOptions): string {
  // By default, a primary waits five seconds for more replicas before it starts a copy.
  const lines = [`bind ${host}`, `dir ${directory}`, 'save ""', 'repl-diskless-sync-delay 0']
  const quoted = JSON.stringify(password)
  if (password !== undefined) lines.push(`requirepass ${quoted}`, `masterauth ${quoted}`)
  if (tls) {
    writeFileSync(join(directory, 'cert.pem'), tls.cert)
    writeFileSync(join(directory, 'key.pem'), tls.key, { mode: 0o600 })
    lines.push('port 0', `tls-port ${port}`, 'tls-auth-clients no', 'tls-replication yes')
    lines.push('tls-cert-file cert.pem', 'tls-key-file key.pem', 'tls-ca-cert-file cert.pem')
  } else {
    lines.push(`port ${port}`)
  }
  const file = join(directory, 'redis.conf')
  writeFileSync(file, [...lines, ...config, ''].join('\n'))
  return file
}

/** Checks that this process answers: another server may have taken the port. */
async function answering(server: GuardedProcess, address: Address): Promise<void> {
  const answer = await eventually(`a reply from the server at port ${address.port}`, async () => {
    if (!server.isRunning()) return 'ended'
    const info = String(await callOnce(address, 'INFO', 'server'))
    if (!info.includes(`process_id:${server.pid}\r`)) return undefined
    return (await callOnce(address, 'PING')) === 'PONG' && 'ready'
  })
  if (answer === 'ended') throw new Error(`the server at port ${address.port} exited:\n${server.output()}`)
}
