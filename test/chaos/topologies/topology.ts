/** A set of Redis servers under test: a single server, sentinels or a cluster. */
import type { Random } from '../schedule.js'

export interface FaultEffect {
  /** When the fault is over, in microseconds; the time at which the control client was answered again. */
  readonly to: number
  readonly explains: 'outage' | 'cut' | 'none'
  readonly losesWrites?: boolean
  readonly users?: readonly string[]
}

/** A fault with its parameters, decided by the seed before it happens. */
export interface Fault {
  readonly text: string
  /** About how long it takes, where that is long. */
  readonly takesMs?: number
  apply(scene: Scene): Promise<FaultEffect>
}

/** The parts of a run that a fault can use. */
export interface Scene {
  /** The identities that are asked for. */
  readonly users: readonly string[]
}

/** A period in which Redis did not answer the control client in time, or changed its primary by itself. */
export interface Observation {
  readonly what: string
  readonly from: number
  readonly to: number
  readonly losesWrites?: boolean
}

export interface Topology {
  readonly name: 'standalone' | 'sentinel' | 'cluster'
  /** As a configuration file names it. */
  readonly where: Readonly<Record<string, unknown>>
  /** One fault, chosen by random numbers. */
  fault(random: Random): Fault
  /** Observations of the control client since the last call. */
  observations(): readonly Observation[]
  /** Resolves when all servers run and the control client is answered. */
  settle(): Promise<void>
  stop(): Promise<void>
}
