import { type Clock, systemClock } from '../core/clock.js'
import { FluxGateError } from '../core/errors.js'
import type { RuleSet } from '../core/rule.js'
import type { ReloadRequest, RuleSetProvider } from '../core/rule-set-provider.js'
import { inSlices } from '../core/scheduling/steps.js'
import { loadedSteps } from './loaded-rules.js'
import type { Requirement } from './requirement.js'
import { ruleSetsDigest } from './rule-sets-digest.js'

/** What came of a reload. After an error the rules are the ones from before. */
export type ReloadResult =
  | { readonly changed: boolean; readonly ruleSets: readonly RuleSet[] }
  | { readonly error: FluxGateError }

export interface RuleBookStatus {
  readonly source: string
  readonly ruleSets: number
  readonly rules: number
  /** When the rules in force were first read, and when they were last confirmed; epoch milliseconds. */
  readonly changedAt: number
  readonly loadedAt: number
  /** Since when, and why, newer rules could not be loaded; `null` when all is well. */
  readonly failure: { readonly error: FluxGateError; readonly sinceAt: number } | null
}

export interface RuleBookOptions {
  readonly clock?: Clock | undefined
  /** Rules that do not meet it are not taken, as if they did not parse. */
  readonly requirement?: Requirement | undefined
}

/** A reload is over when every listener has settled. */
type Listener = (result: ReloadResult) => unknown

/**
 * The rules in force. The list is replaced as a whole and never changed, so whoever holds one finishes with it; rules
 * that do not load or parse replace nothing.
 */
export class RuleBook {
  readonly #provider: RuleSetProvider
  readonly #clock: Clock
  readonly #requirement: Requirement | undefined
  readonly #listeners = new Set<Listener>()
  #current: readonly RuleSet[]
  #digest: string
  #changedAt: number
  #loadedAt: number
  #failure: RuleBookStatus['failure'] = null
  #running: Promise<ReloadResult> | undefined
  #next: Promise<ReloadResult> | undefined
  /** Whether nobody waits for the next one but those who poll. */
  #isNextPoll = true

  private constructor(
    provider: RuleSetProvider,
    options: RuleBookOptions,
    ruleSets: readonly RuleSet[],
    digest: string,
  ) {
    const { clock = systemClock, requirement } = options
    this.#provider = provider
    this.#clock = clock
    this.#requirement = requirement
    this.#current = ruleSets
    this.#digest = digest
    this.#changedAt = clock.now()
    this.#loadedAt = this.#changedAt
  }

  /** Loads for the first time. There is nothing to fall back to yet, so a failure is thrown. */
  static async open(provider: RuleSetProvider, options: RuleBookOptions = {}): Promise<RuleBook> {
    const ruleSets = await load(provider, options.requirement)
    return new RuleBook(provider, options, ruleSets, await inSlices(ruleSetsDigest(ruleSets)))
  }

  get current(): readonly RuleSet[] {
    return this.#current
  }

  /** Calls back after each reload, changed or not, and after a poll that found something; the result unsubscribes. */
  onReload(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /**
   * Loads again; never rejects. One load runs at a time. Those who ask while it runs share the one after it, because the
   * one that runs may have read the rules before the change they ask for.
   */
  reload({ poll = false }: ReloadRequest = {}): Promise<ReloadResult> {
    if (this.#running === undefined) {
      this.#running = this.#load(poll)
      return this.#running
    }
    if (!poll) this.#isNextPoll = false
    this.#next ??= this.#running.then(() => {
      const isPoll = this.#isNextPoll
      this.#isNextPoll = true
      this.#next = undefined
      this.#running = this.#load(isPoll)
      return this.#running
    })
    return this.#next
  }

  status(): RuleBookStatus {
    return {
      source: this.#provider.source,
      ruleSets: this.#current.length,
      rules: this.#current.reduce((count, { rules }) => count + rules.length, 0),
      changedAt: this.#changedAt,
      loadedAt: this.#loadedAt,
      failure: this.#failure,
    }
  }

  async #load(isPoll: boolean): Promise<ReloadResult> {
    const wasWell = this.#failure === null
    const result = await load(this.#provider, this.#requirement, this.#current).then(
      (ruleSets) => this.#take(ruleSets),
      (error: FluxGateError) => this.#keep(error),
    )
    const isNews = !isPoll || !wasWell || 'error' in result || result.changed
    if (isNews) for (const listener of this.#listeners) await tell(listener, result)
    if (this.#next === undefined) this.#running = undefined
    return result
  }

  async #take(ruleSets: readonly RuleSet[]): Promise<ReloadResult> {
    const digest = isKnown(ruleSets, this.#current) ? this.#digest : await inSlices(ruleSetsDigest(ruleSets))
    const changed = digest !== this.#digest
    this.#failure = null
    this.#loadedAt = this.#clock.now()
    if (changed) {
      this.#current = ruleSets
      this.#digest = digest
      this.#changedAt = this.#loadedAt
    }
    return { changed, ruleSets: this.#current }
  }

  #keep(error: FluxGateError): ReloadResult {
    this.#failure = { error, sinceAt: this.#failure?.sinceAt ?? this.#clock.now() }
    return { error }
  }
}

/** Providers written by others may throw anything, at once or later. */
async function load(
  provider: RuleSetProvider,
  requirement?: Requirement,
  current?: readonly RuleSet[],
): Promise<readonly RuleSet[]> {
  try {
    const loaded = await provider.load()
    if (current !== undefined && isKnown(loaded, current)) return current
    return await inSlices(loadedSteps(loaded, provider.source, requirement))
  } catch (cause) {
    if (cause instanceof FluxGateError) throw cause
    const message = `Rules could not be loaded from ${provider.source}: ${cause instanceof Error ? cause.message : String(cause)}`
    throw new FluxGateError('FLUXGATE_RULES_UNREADABLE', message, { cause })
  }
}

/** True if a provider has loaded the rules in force again, and has frozen the list: those have been checked already. */
const isKnown = (loaded: unknown, current: readonly RuleSet[]): boolean => loaded === current && Object.isFrozen(loaded)

/** A listener's error is its own: it must not pass for a failed reload, nor keep others from hearing. */
async function tell(listener: Listener, result: ReloadResult): Promise<void> {
  try {
    await listener(result)
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
  }
}
