/** One seed: requests and faults at the same time, then the judgement. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Bed } from './bed.js'
import { check, type Violation } from './checker/checker.js'
import { remoteProcess, serverProcess } from './checker/degraded.js'
import { ClockWatch } from './clock-watch.js'
import { type History, type Incident, nowUs } from './history.js'
import { editedRules } from './limits.js'
import { type ProcessFault, processFaultText, type Schedule, type Scheduled, scheduleOf } from './schedule.js'
import type { Fault, Observation, Scene, Topology } from './topologies/topology.js'

export interface RunResult {
  readonly topology: string
  readonly seed: number
  readonly faultMs: number
  readonly startAt: number
  readonly history: History
  readonly violations: readonly Violation[]
}

export interface RunOptions {
  readonly bed: Bed
  readonly topology: Topology
  readonly seed: number
  /** How long faults are started for; the run ends when they are over and decisions must be exact again. */
  readonly faultMs: number
}

/** More than the second after which decisions must be exact again, so that some are seen. */
const calmMs = 1_500

const recentUs = 3_000_000
/** Decisions must be exact this long after a fault, so faults before it have no effect any more when requests end. */
const exactAgainUs = 1_000_000

/** The users of one run differ from those of every other, so that all their buckets are new. */
let runs = 0

export async function runSeed({ bed, topology, seed, faultMs }: RunOptions): Promise<RunResult> {
  await topology.settle()
  const recent = recentIncidents(bed)
  const processes = bed.subjects.map(({ name }) => name)
  const schedule = scheduleOf({ seed, topology, ms: faultMs, processes, editedRules })
  const tag = `s${seed}r${++runs}`
  const scene = { users: [0, 1, 2].map((user) => `${tag}-${user}`) }
  const clock = new ClockWatch()
  const startAt = nowUs()
  bed.load(seed, tag)
  await Promise.all([redisTrack(schedule, bed, scene), processTrack(schedule, bed)])
  await topology.settle()
  await pause(calmMs)
  const unanswered = await bed.unload()
  // A silence becomes an observation when it ends, and the last one may still last.
  await topology.settle()
  const observedServer = await bed.observations()
  const observed = merged(topology.observations()).map(
    ({ what, ...period }): Incident => ({ fault: what, isObserved: true, explains: 'outage', ...period }),
  )
  bed.incidents.push(...recent, ...observedServer, ...observed)
  const history: History = {
    entries: bed.entries,
    incidents: bed.incidents.toSorted((a, b) => a.from - b.from),
    loops: bed.loops,
    unanswered,
    clockOffset: clock.stop(),
  }
  return { topology: topology.name, seed, faultMs, startAt, history, violations: check(history) }
}

/**
 * Faults just before this run may still explain its first decisions. Circuit breakers are closed by requests only: one that
 * was open when the requests of the run before ended is still open now, so the faults that explain it last until now. All
 * buckets of this run are new, so none has lost writes.
 */
function recentIncidents({ incidents, unloadedAt }: Bed): Incident[] {
  const now = nowUs()
  const lasting = incidents.filter(({ explains, to }) => explains !== 'none' && to > unloadedAt - exactAgainUs)
  const others = incidents.filter((incident) => !lasting.includes(incident) && incident.to > now - recentUs)
  return [...others, ...lasting.map((incident) => ({ ...incident, to: now, losesWrites: false }))]
}

/** Silences of several servers at the same time are one. */
function merged(observations: readonly Observation[]): Observation[] {
  const losses = observations.filter(({ losesWrites }) => losesWrites)
  const silences: Observation[] = []
  for (const one of observations.filter(({ losesWrites }) => !losesWrites).sort((a, b) => a.from - b.from)) {
    const last = silences.at(-1)
    if (last && one.from <= last.to) silences[silences.length - 1] = { ...last, to: Math.max(last.to, one.to) }
    else silences.push(one)
  }
  return [...losses, ...silences]
}

/** Every fault is followed by the next, so that each ends before another begins. */
async function track<T>(faults: readonly Scheduled<T>[], apply: (fault: T) => Promise<Incident>, bed: Bed) {
  for (const { afterMs, fault } of faults) {
    await pause(afterMs)
    bed.incidents.push(await apply(fault))
  }
}

const redisTrack = ({ redis }: Schedule, bed: Bed, scene: Scene): Promise<void> =>
  track<Fault>(
    redis,
    async (fault) => {
      const from = nowUs()
      return { fault: fault.text, from, ...(await fault.apply(scene)) }
    },
    bed,
  )

const processTrack = ({ processes }: Schedule, bed: Bed): Promise<void> =>
  track<ProcessFault>(
    processes,
    async (fault) => {
      const from = nowUs()
      const more = await applyToProcess(fault, bed)
      return { fault: processFaultText(fault), from, to: nowUs(), explains: 'none', ...more }
    },
    bed,
  )

async function applyToProcess(fault: ProcessFault, bed: Bed): Promise<Partial<Incident>> {
  if (fault.kind === 'edit') {
    await bed.edit(fault.rule, fault.more)
    return {}
  }
  const subject = bed.subject(fault.process)
  switch (fault.kind) {
    case 'stall':
      subject.stall(fault.ms)
      await pause(fault.ms)
      return {}
    case 'stop':
      subject.signal('SIGSTOP')
      await pause(fault.ms)
      subject.signal('SIGCONT')
      return {}
    case 'restart':
      await subject.kill()
      await pause(fault.ms)
      await subject.start()
      return {
        down: fault.process,
        ...(fault.process === serverProcess && { explains: 'outage', processes: [remoteProcess] }),
      }
  }
}
