/** Random choices that follow from a seed, and the faults of one run with their times. */
import { seededRandom } from '../../src/core/seeded-random.js'
import type { Fault, Topology } from './topologies/topology.js'

export class Random {
  readonly #next: () => number

  constructor(seed: number) {
    this.#next = seededRandom(Math.imul(2 * seed, 0x9e3779b1))
  }

  /** A whole number from `least` to `most`, both included. */
  whole(least: number, most: number): number {
    return least + Math.floor(this.#next() * (most - least + 1))
  }

  pick<T>(values: readonly T[]): T {
    const picked = values[this.whole(0, values.length - 1)]
    if (picked === undefined) throw new Error('there is nothing to pick from')
    return picked
  }
}

/** Something that happens to a process under test. */
export type ProcessFault =
  | { readonly kind: 'stall' | 'stop' | 'restart'; readonly process: string; readonly ms: number }
  | { readonly kind: 'edit'; readonly rule: string; readonly more: number }

export interface Scheduled<T> {
  /** The time that passes between the end of the fault before it, or the start of the run, and this one. */
  readonly afterMs: number
  readonly fault: T
}

/** Faults of Redis, and faults of the processes beside them. Within a track they follow each other. */
export interface Schedule {
  readonly seed: number
  readonly redis: readonly Scheduled<Fault>[]
  readonly processes: readonly Scheduled<ProcessFault>[]
}

export interface ScheduleOptions {
  readonly seed: number
  readonly topology: Topology
  readonly ms: number
  readonly processes: readonly string[]
  readonly editedRules: readonly string[]
}

/** Gaps are long enough for the harness to see exact decisions between two faults in some of them, and not in others. */
export function scheduleOf({ seed, topology, ms, processes, editedRules }: ScheduleOptions): Schedule {
  // Each track has its own numbers, so that a shorter schedule is the beginning of a longer one.
  const [forRedis, random] = [new Random(seed), new Random(seed + 0.5)]
  const redis: Scheduled<Fault>[] = []
  const own: Scheduled<ProcessFault>[] = []
  for (let at = 0; at < ms; ) {
    const afterMs = forRedis.whole(150, 1_900)
    const fault = topology.fault(forRedis)
    redis.push({ afterMs, fault })
    at += afterMs + (fault.takesMs ?? 300)
  }
  for (let at = 0, edits = 0; at < ms; ) {
    const afterMs = random.whole(150, 1_500)
    const kind = random.pick(['stall', 'stall', 'stop', 'restart', 'edit'] as const)
    // A capacity is used once per run, so that it tells the generations of a rule apart.
    if (kind === 'edit') own.push({ afterMs, fault: { kind, rule: random.pick(editedRules), more: ++edits } })
    else own.push({ afterMs, fault: { kind, process: random.pick(processes), ms: random.whole(30, 400) } })
    at += afterMs + (kind === 'restart' ? 1_000 : 200)
  }
  return { seed, redis, processes: own }
}

export const processFaultText = (fault: ProcessFault): string => {
  switch (fault.kind) {
    case 'stall':
      return `block the event loop of ${fault.process} for ${fault.ms} ms`
    case 'stop':
      return `SIGSTOP ${fault.process} for ${fault.ms} ms`
    case 'restart':
      return `SIGKILL ${fault.process}, start it after ${fault.ms} ms`
    case 'edit':
      return `raise the capacity of rule ${fault.rule} by ${fault.more}`
  }
}
