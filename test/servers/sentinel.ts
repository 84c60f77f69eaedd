/** A primary with replicas, watched by three sentinels. */
import { eventually } from '../fixtures/eventually.js'
import { type RedisServer, startRedis } from './redis-server.js'

export interface SentinelOptions {
  readonly name?: string
  readonly password?: string
  /**
   * The time without a reply after which a replica takes over. Default 60,000: a machine that pauses must not cause this. Tests of
   * failovers set `quickFailover`.
   */
  readonly downAfterMs?: number
  /** Default 2. Tests without a failover need none. */
  readonly replicas?: number
  readonly binary?: string
}

export interface SentinelGroup {
  /** The name of the group in the sentinels. */
  readonly name: string
  readonly sentinels: readonly RedisServer[]
  /** The primary and the replicas, in no particular order. */
  readonly servers: readonly RedisServer[]
  /** The primary that the sentinels report. */
  primary(): Promise<RedisServer>
  replicas(): Promise<RedisServer[]>
  /** Resolves with the killed server, which becomes a replica when it is restarted. */
  killPrimary(): Promise<RedisServer>
  /** Resolves when all sentinels report a running server other than `old` and that server is a primary. */
  waitForNewPrimary(old: RedisServer): Promise<RedisServer>
  stop(): Promise<void>
}

export const quickFailover: SentinelOptions = { downAfterMs: 700 }

export async function startSentinel(options: SentinelOptions = {}): Promise<SentinelGroup> {
  const { name = 'fluxgate', downAfterMs = 60_000, replicas: replicaCount = 2 } = options
  const server = {
    ...(options.password && { password: options.password }),
    ...(options.binary && { binary: options.binary }),
  }
  const first = await startRedis(server)
  const follow = { ...server, config: [`replicaof ${first.host} ${first.port}`] }
  const replicas = await Promise.all(Array.from({ length: replicaCount }, () => startRedis(follow)))
  await Promise.all(replicas.map(inSync))
  const servers = [first, ...replicas]
  const config = [
    `sentinel monitor ${name} ${first.host} ${first.port} 2`,
    `sentinel down-after-milliseconds ${name} ${downAfterMs}`,
    `sentinel failover-timeout ${name} 3000`,
    ...(options.password ? [`sentinel auth-pass ${name} ${options.password}`] : []),
  ]
  const start = () => startRedis({ ...(options.binary && { binary: options.binary }), sentinel: true, config })
  const sentinels = await Promise.all([start(), start(), start()])
  await Promise.all(sentinels.map((sentinel) => acquainted(sentinel, name, replicaCount)))

  const named = async (sentinel: RedisServer): Promise<RedisServer | undefined> => {
    const address = await sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name)
    return Array.isArray(address) ? servers.find(({ port }) => port === Number(address[1])) : undefined
  }
  const primary = () => eventually('a primary reported by a sentinel', () => Promise.any(sentinels.map(named)))
  return {
    name,
    sentinels,
    servers,
    primary,
    async replicas() {
      const current = await primary()
      return servers.filter((candidate) => candidate !== current && candidate.isRunning())
    },
    async killPrimary() {
      const killed = await primary()
      await killed.kill()
      return killed
    },
    waitForNewPrimary: (old) =>
      eventually('a new primary', async () => {
        const [candidate, ...others] = await Promise.all(sentinels.filter((one) => one.isRunning()).map(named))
        if (!candidate?.isRunning() || candidate === old || others.some((other) => other !== candidate))
          return undefined
        return (await roleOf(candidate)) === 'master' && candidate
      }),
    async stop() {
      await Promise.all([...sentinels, ...servers].map((one) => one.stop()))
    },
  }
}

async function roleOf(server: RedisServer): Promise<unknown> {
  const role = await server.call('ROLE')
  return Array.isArray(role) ? role[0] : undefined
}

export const inSync = (replica: RedisServer): Promise<boolean> =>
  eventually(`the replica at port ${replica.port} is in sync`, async () =>
    String(await replica.call('INFO', 'replication')).includes('master_link_status:up'),
  )

/** Sentinels announce themselves every two seconds and query servers every ten, unless they are reset. */
async function acquainted(sentinel: RedisServer, name: string, replicaCount: number): Promise<void> {
  await sentinel.call('SENTINEL', 'DEBUG', 'publish-period', 100, 'info-period', 200)
  await eventually(`the sentinel at port ${sentinel.port} knows the others`, async () => {
    const state = await sentinel.call('SENTINEL', 'MASTER', name)
    if (!Array.isArray(state)) return false
    const field = (key: string) => Number(state[state.indexOf(key) + 1])
    return field('num-slaves') === replicaCount && field('num-other-sentinels') === 2
  })
}
