/** Commands right after their start: they listen once they are connected, and then decide exactly. */
import { createServer } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Running, tempWorkspace, type Workspace } from '../../e2e/running-program.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { freePort } from '../../servers/free-port.js'
import { ownRedis } from '../../servers/own-redis.js'
import { freshPrefix } from '../../servers/shared-redis.js'
import { startProxy } from '../../servers/tcp-proxy.js'

const redis = await ownRedis()

const processes = 8
const capacity = 100
const requests = 30
/** Eight programs that start at once take a while on a busy machine. */
const longest = { timeout: 180_000 }
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const ruleSet = { id: 'api', rules: [{ id: 'all', limitScope: 'GLOBAL', bands: [{ capacity, window: '30d' }] }] }

async function upstream(): Promise<string> {
  const server = createServer((_, response) => void response.end('ok'))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
}

interface Program {
  readonly name: string
  readonly args: readonly string[]
  /** The URL of the program; undefined until it listens. */
  urlOf(stdout: string): string | undefined
  /** Sends one request and resolves with true if it is allowed. */
  ask(url: string): Promise<boolean>
}

const found = (pattern: RegExp) => (stdout: string) => pattern.exec(stdout)?.[1]
const isForwarded = async (url: string): Promise<boolean> => (await fetch(`${url}/x`)).status === 200

const programs: readonly Program[] = [
  {
    name: 'serve',
    args: ['serve', '--port', '0'],
    urlOf: found(/API listens on (http:\S+)/),
    async ask(url) {
      const headers = { 'Content-Type': 'application/json' }
      const response = await fetch(`${url}/api/ratelimit/check`, { method: 'POST', headers, body: '{}' })
      return ((await response.json()) as { allowed: boolean }).allowed
    },
  },
  {
    name: 'gateway',
    args: ['gateway', '--port', '0'],
    urlOf: found(/listens on (http:\S+)/),
    ask: isForwarded,
  },
  {
    name: 'start',
    args: ['start', '--port', '0', '--server-port', '0'],
    urlOf: found(/FluxGate listens on (http:\S+)/),
    ask: isForwarded,
  },
]

async function configured(): Promise<Workspace> {
  const workspace = tempWorkspace()
  const route = { id: 'all', uri: await upstream(), predicates: ['Path=/**'], filters: ['RateLimiter=api'] }
  workspace.write('rules.yaml', ruleSet)
  workspace.write('fluxgate.yaml', { gateway: { routes: [route] } })
  return workspace
}

/** Resolves with the URL in the turn in which the program reports that it listens. Rejects if it exits before. */
function listening(running: Running, { urlOf }: Program): Promise<string> {
  return new Promise((resolve, reject) => {
    running.process.stdout?.on('data', () => {
      const url = urlOf(running.stdout())
      if (url !== undefined) resolve(url)
    })
    void running.ended.then((status) => reject(new Error(`it ended with ${status}: ${running.stderr()}`)))
  })
}

const warningsOf = (running: Running): string[] =>
  running
    .stderr()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { level: string; message: string })
    .filter(({ level }) => level === 'warn')
    .map(({ message }) => message)

describe.each(programs)('fluxgate $name', (program) => {
  it('admits exactly one limit across eight processes that are called as soon as they listen', longest, async () => {
    const workspace = await configured()
    const env = { FLUXGATE_REDIS_URI: redis.uri, FLUXGATE_STORE_PREFIX: freshPrefix() }
    const running = Array.from({ length: processes }, () => workspace.launch(program.args, env))
    const allowed = await Promise.all(
      running.map(async (one) => {
        const url = await listening(one, program)
        const answers = await Promise.all(Array.from({ length: requests }, () => program.ask(url)))
        return answers.filter(Boolean).length
      }),
    )
    expect(allowed.reduce((sum, count) => sum + count, 0)).toBe(capacity)
    expect(running.flatMap(warningsOf)).toEqual([])
  })

  it('listens only once it is connected to Redis', longest, async () => {
    const proxy = await stopAfterTest(startProxy(redis.port))
    await proxy.refuse()
    const workspace = await configured()
    const running = workspace.launch(program.args, {
      FLUXGATE_REDIS_URI: `redis://127.0.0.1:${proxy.port}`,
      FLUXGATE_STORE_PREFIX: freshPrefix(),
      FLUXGATE_STORE_CONNECT_TIMEOUT_MS: '60000',
    })
    const url = listening(running, program)
    // More than a program needs to start on an idle machine. On a busy machine this proves less, but cannot fail.
    await sleep(2_500)
    expect(running.stdout()).toBe('')
    await proxy.accept()
    expect(await program.ask(await url)).toBe(true)
    expect(warningsOf(running)).toEqual([])
  })

  it('logs a warning and listens if Redis does not start in time', longest, async () => {
    const port = await freePort()
    const workspace = await configured()
    const running = workspace.launch(program.args, {
      FLUXGATE_REDIS_URI: `redis://:s3cret@127.0.0.1:${port}`,
      FLUXGATE_STORE_CONNECT_TIMEOUT_MS: '200',
    })
    const url = await listening(running, program)
    await running.until('the warning is logged', () =>
      warningsOf(running).some((message) => message.includes('Cannot reach the bucket store')),
    )
    expect(running.stdout() + running.stderr()).not.toContain('s3cret')
    expect(await program.ask(url)).toBe(true)
  })
})
