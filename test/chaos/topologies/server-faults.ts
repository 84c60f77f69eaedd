/** Faults that any arrangement of servers can have. */
import { setTimeout as pause } from 'node:timers/promises'
import { eventually } from '../../fixtures/eventually.js'
import type { RedisServer } from '../../servers/redis-server.js'
import { nowUs } from '../history.js'
import type { Random } from '../schedule.js'
import type { Fault, FaultEffect } from './topology.js'

/** Servers on a busy machine take their time, which is no fault of theirs. */
export const until = <T>(what: string, probe: () => Promise<T | undefined | false>): Promise<T> =>
  eventually(what, probe, 60_000)

export type MakeFault = (random: Random) => Fault

export const moment = (explains: FaultEffect['explains']): FaultEffect => ({ to: nowUs(), explains })

/** The servers are running; the faults concern those that `primaries` returns. */
export interface Servers {
  readonly all: readonly RedisServer[]
  primaries(): Promise<readonly RedisServer[]>
  /** Resolves when the processes under test should find Redis usable again. */
  usable(): Promise<unknown>
}

export const serverFaults = ({ all, primaries, usable }: Servers): readonly MakeFault[] => [
  () => ({
    text: 'CLIENT KILL TYPE normal on all primaries',
    async apply() {
      await Promise.all((await primaries()).map((server) => server.call('CLIENT', 'KILL', 'TYPE', 'normal')))
      return moment('cut')
    },
  }),
  () => ({
    text: 'SCRIPT FLUSH on all servers',
    async apply() {
      await Promise.all(all.filter((server) => server.isRunning()).map((server) => server.call('SCRIPT', 'FLUSH')))
      return moment('none')
    },
  }),
  (random) => {
    const ms = random.whole(50, 500)
    const chosen = random.whole(0, 1_000)
    return {
      text: `SIGSTOP a primary for ${ms} ms`,
      async apply() {
        const found = await primaries()
        const server = found[chosen % found.length] as RedisServer
        server.pause()
        await pause(ms)
        server.resume()
        await usable()
        return moment('outage')
      },
    }
  },
]
