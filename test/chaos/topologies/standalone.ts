/** One Redis server behind a network that can fail. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type RedisServer, startRedis } from '../../servers/redis-server.js'
import { startProxy, type TcpProxy } from '../../servers/tcp-proxy.js'
import { ControlClient, roleOf } from '../processes/control-client.js'
import type { Random } from '../schedule.js'
import { type MakeFault, moment } from './server-faults.js'
import type { FaultEffect, Topology } from './topology.js'

/** A round trip that is slower by this much still meets the deadline of 100 ms. */
const harmlessMs = 50

export async function startStandalone(): Promise<Topology> {
  // Every write is handed to the kernel before its reply: SIGKILL loses none unless the file is removed.
  const server = await startRedis({ config: ['appendonly yes', 'appendfsync no'] })
  const proxy = await startProxy(server.port)
  const control = new ControlClient({
    name: 'Redis',
    ask: roleOf({ host: proxy.host, port: proxy.port }),
    isProxied: true,
  })
  await control.answered()
  const faults = faultsOf(server, proxy, control)
  return {
    name: 'standalone',
    where: { uri: `redis://${proxy.host}:${proxy.port}` },
    fault: (random) => random.pick(faults)(random),
    observations: () => control.observations(),
    async settle() {
      await control.answered()
    },
    async stop() {
      await control.stop()
      await proxy.stop()
      await server.stop()
    },
  }
}

function faultsOf(
  server: RedisServer,
  proxy: TcpProxy,
  control: Pick<ControlClient<unknown>, 'answered'>,
): readonly MakeFault[] {
  const outage = async (more: Partial<FaultEffect> = {}): Promise<FaultEffect> => ({
    to: await control.answered(),
    explains: 'outage',
    ...more,
  })

  const kill = (losesWrites: boolean) => (random: Random) => {
    const ms = random.whole(0, 500)
    return {
      text: `SIGKILL Redis, start it after ${ms} ms ${losesWrites ? 'without its data' : 'with all acknowledged writes'}`,
      async apply() {
        await server.kill()
        await pause(ms)
        if (losesWrites) rmSync(join(server.directory, 'appendonlydir'), { recursive: true, force: true })
        await server.restart()
        return outage({ losesWrites })
      },
    }
  }
  const stop = (random: Random) => {
    const ms = random.whole(50, 600)
    return {
      text: `SIGSTOP Redis for ${ms} ms`,
      async apply() {
        server.pause()
        await pause(ms)
        server.resume()
        return outage()
      },
    }
  }
  const cut = () => ({
    text: 'reset all connections to Redis',
    async apply() {
      proxy.cut()
      return moment('cut')
    },
  })
  const clientKill = () => ({
    text: 'CLIENT KILL TYPE normal',
    async apply() {
      await server.call('CLIENT', 'KILL', 'TYPE', 'normal')
      return moment('cut')
    },
  })
  const halfClose = () => ({
    text: 'half-close all connections from Redis',
    async apply() {
      proxy.halfClose()
      return moment('cut')
    },
  })
  const delay = (random: Random) => {
    const roundTripMs = random.pick([5, 20, harmlessMs, 150, 300])
    const ms = random.whole(100, 800)
    return {
      text: `delay round trips to Redis by ${roundTripMs} ms for ${ms} ms`,
      async apply() {
        proxy.setDelay(roundTripMs / 2)
        await pause(ms)
        proxy.setDelay(0)
        return outage(roundTripMs <= harmlessMs ? { explains: 'none' } : {})
      },
    }
  }
  const blackHole = (random: Random) => {
    const ms = random.whole(100, 700)
    return {
      text: `no byte passes between the processes and Redis for ${ms} ms`,
      async apply() {
        proxy.hang()
        await pause(ms)
        proxy.resume()
        return outage()
      },
    }
  }
  const refuse = (random: Random) => {
    const ms = random.whole(50, 500)
    return {
      text: `reset all connections to Redis and refuse new ones for ${ms} ms`,
      async apply() {
        await proxy.refuse()
        proxy.cut()
        await pause(ms)
        await proxy.accept()
        return outage()
      },
    }
  }
  const flushScripts = () => ({
    text: 'SCRIPT FLUSH',
    async apply() {
      await server.call('SCRIPT', 'FLUSH')
      return moment('none')
    },
  })
  return [kill(false), kill(true), stop, cut, clientKill, halfClose, delay, blackHole, refuse, flushScripts]
}
