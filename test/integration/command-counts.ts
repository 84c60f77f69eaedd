import type { RedisServer } from '../servers/redis-server.js'

type Counts = Readonly<Record<string, number>>

/** How often the server has done each command since it was started, those of scripts included. */
export async function commandCounts(server: Pick<RedisServer, 'call'>): Promise<Counts> {
  const lines = String(await server.call('INFO', 'commandstats')).matchAll(/cmdstat_([^:]+):calls=(\d+)/g)
  return Object.fromEntries([...lines].map(([, name, calls]) => [String(name), Number(calls)]))
}

/** How often it did each of the given commands while `act` went on. */
export async function countCalls<Name extends string>(
  server: Pick<RedisServer, 'call'>,
  names: readonly Name[],
  act: () => Promise<unknown>,
): Promise<Record<Name, number>> {
  const before = await commandCounts(server)
  await act()
  const after = await commandCounts(server)
  const counted = names.map((name) => [name, (after[name] ?? 0) - (before[name] ?? 0)])
  return Object.fromEntries(counted) as Record<Name, number>
}
