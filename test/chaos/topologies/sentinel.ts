/** A primary and two replicas, watched by three sentinels. */
import type { RedisServer } from '../../servers/redis-server.js'
import { inSync, type SentinelGroup, startSentinel } from '../../servers/sentinel.js'
import { nowUs } from '../history.js'
import { PrimaryWatch } from './primary-watch.js'
import { type MakeFault, moment, serverFaults, until } from './server-faults.js'
import type { Topology } from './topology.js'

/** Longer than any pause of a server here, so that most failovers are those of the schedule. */
const downAfterMs = 1_000

export async function startSentinelTopology(): Promise<Topology> {
  const group = await startSentinel({ downAfterMs })
  await Promise.all(group.sentinels.map((sentinel) => hurry(sentinel, group.name)))
  const watch = new PrimaryWatch(group.servers)
  await watch.answered()
  const usable = () => agreedPrimary(group)
  const faults: readonly MakeFault[] = [
    ...serverFaults({ all: group.servers, primaries: async () => [await group.primary()], usable }),
    failover(group),
    killPrimary(group),
  ]
  return {
    name: 'sentinel',
    where: {
      sentinels: group.sentinels.map(({ host, port }) => `${host}:${port}`),
      sentinelName: group.name,
    },
    fault: (random) => random.pick(faults)(random),
    observations: () => watch.observations(),
    async settle() {
      await replicasInSync(group)
      await watch.answered()
    },
    async stop() {
      await watch.stop()
      await group.stop()
    },
  }
}

/**
 * Sentinels ping as often as `downAfterMs`, so that one late reply would be a failover. During a failover they look at
 * replicas once a second; four publish periods have to be longer, or another sentinel demotes the new primary.
 * A second failover of a group starts twice `failover-timeout` after the first.
 */
async function hurry(sentinel: RedisServer, name: string): Promise<void> {
  await sentinel.call('SENTINEL', 'DEBUG', 'ping-period', 100, 'publish-period', 300)
  await sentinel.call('SENTINEL', 'SET', name, 'failover-timeout', 1_500)
}

/** All sentinels name one primary, it is one, and no other running server takes itself for one. */
const agreedPrimary = (group: SentinelGroup): Promise<RedisServer> =>
  until('one primary', async () => {
    const named = await Promise.all(
      group.sentinels.map((one) => one.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', group.name)),
    )
    const ports = new Set(named.map((address) => (Array.isArray(address) ? Number(address[1]) : 0)))
    if (ports.size > 1) return undefined
    const running = group.servers.filter((server) => server.isRunning())
    const roles = await Promise.all(running.map((server) => server.call('ROLE')))
    const primaries = running.filter((_, index) => (roles[index] as unknown[])[0] === 'master')
    return primaries.length === 1 && ports.has(primaries[0]?.port ?? -1) && primaries[0]
  })

async function replicasInSync(group: SentinelGroup): Promise<void> {
  const primary = await agreedPrimary(group)
  await Promise.all(group.servers.filter((server) => server !== primary).map(inSync))
}

const failover = (group: SentinelGroup) => () => ({
  text: 'SENTINEL FAILOVER',
  takesMs: 2_500,
  async apply() {
    await replicasInSync(group)
    const old = await group.primary()
    // A failover that a busy machine makes too slow is given up, and has to be asked for again.
    await until('the failover is complete', async () => {
      if ((await agreedPrimary(group)) !== old) return true
      await group.sentinels[0]?.call('SENTINEL', 'FAILOVER', group.name).catch(() => {})
      return false
    })
    return moment('outage')
  },
})

const killPrimary = (group: SentinelGroup) => () => ({
  text: 'SIGKILL the primary, start it again after the failover',
  takesMs: 4_000,
  async apply() {
    await replicasInSync(group)
    const old = await group.killPrimary()
    await until('another primary', async () => (await agreedPrimary(group)) !== old)
    const to = nowUs()
    await old.restart()
    await replicasInSync(group)
    return { to, explains: 'outage' as const }
  },
})
