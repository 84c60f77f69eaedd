import { type Clock, systemClock } from '../core/clock.js'
import type { ReloadRequest, RuleSetProvider } from '../core/contracts/rule-set-provider.js'
import { FluxGateError } from '../core/errors.js'
import type { RuleSet } from '../core/rule.js'
import { inSlices } from '../core/scheduling/steps.js'
import { checkProvidedRules, type RuleRequirement } from './check-provided-rules.js'
import { ruleSetsDigest } from './rule-sets-digest.js'

/** The result of a reload. After an error, the previous rules stay in use. */
export type ReloadResult =
  | { readonly changed: boolean; readonly ruleSets: readonly RuleSet[] }
  | { readonly error: FluxGateError }

export interface LoadedRulesStatus {
  readonly source: string
  readonly ruleSets: number
  readonly rules: number
  /** When the current rules were first loaded, and when they were last confirmed; epoch milliseconds. */
  readonly changedAt: number
  readonly loadedAt: number
  /** The error of the last reload and the time since which reloads fail; `null` if the last reload succeeded. */
  readonly failure: { readonly error: FluxGateError; readonly sinceAt: number } | null
}

export interface LoadedRulesOptions {
  readonly clock?: Clock | undefined
  /** Rules that do not meet the requirement are rejected like invalid rules. */
  readonly requirement?: RuleRequirement | undefined
}

/** A reload completes after every listener has settled. */
type Listener = (result: ReloadResult) => unknown

/**
 * The current rules. The list is immutable and replaced as a whole, so callers can keep using the list they hold.
 * Rules that fail to load or parse replace nothing.
 */
export class LoadedRules {
  readonly #provider: RuleSetProvider
  readonly #clock: Clock
  readonly #requirement: RuleRequirement | undefined
  readonly #listeners = new Set<Listener>()
  #current: readonly RuleSet[]
  #digest: string
  #changedAt: number
  #loadedAt: number
  #failure: LoadedRulesStatus['failure'] = null
  #running: Promise<ReloadResult> | undefined
  #next: Promise<ReloadResult> | undefined
  /** True if the next load was only requested by polls. */
  #isNextPoll = true

  private constructor(
    provider: RuleSetProvider,
    options: LoadedRulesOptions,
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

  /** Loads the rules for the first time. A failure is thrown, because there are no previous rules to keep. */
  static async open(provider: RuleSetProvider, options: LoadedRulesOptions = {}): Promise<LoadedRules> {
    const ruleSets = await load(provider, options.requirement)
    return new LoadedRules(provider, options, ruleSets, await inSlices(ruleSetsDigest(ruleSets)))
  }

  get current(): readonly RuleSet[] {
    return this.#current
  }

  /** Adds a listener for every reload, and for polls that find a change, an error or a recovery. Returns a function that removes it. */
  onReload(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /**
   * Loads the rules again; never rejects. One load runs at a time. Requests during a load share the next one, because
   * the running load may have read the rules before the change.
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

  status(): LoadedRulesStatus {
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
    const hadNoFailure = this.#failure === null
    const result = await load(this.#provider, this.#requirement, this.#current).then(
      (ruleSets) => this.#accept(ruleSets),
      (error: FluxGateError) => this.#recordFailure(error),
    )
    const isReported = !isPoll || !hadNoFailure || 'error' in result || result.changed
    if (isReported) for (const listener of this.#listeners) await notify(listener, result)
    if (this.#next === undefined) this.#running = undefined
    return result
  }

  async #accept(ruleSets: readonly RuleSet[]): Promise<ReloadResult> {
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

  #recordFailure(error: FluxGateError): ReloadResult {
    this.#failure = { error, sinceAt: this.#failure?.sinceAt ?? this.#clock.now() }
    return { error }
  }
}

/** Custom providers may throw any value, synchronously or asynchronously. */
async function load(
  provider: RuleSetProvider,
  requirement?: RuleRequirement,
  current?: readonly RuleSet[],
): Promise<readonly RuleSet[]> {
  try {
    const loaded = await provider.load()
    if (current !== undefined && isKnown(loaded, current)) return current
    return await inSlices(checkProvidedRules(loaded, provider.source, requirement))
  } catch (cause) {
    if (cause instanceof FluxGateError) throw cause
    const message = `Rules could not be loaded from ${provider.source}: ${cause instanceof Error ? cause.message : String(cause)}`
    throw new FluxGateError('FLUXGATE_RULES_UNREADABLE', message, { cause })
  }
}

/** True if the provider returned the frozen list that is already in use, which needs no further check. */
const isKnown = (loaded: unknown, current: readonly RuleSet[]): boolean => loaded === current && Object.isFrozen(loaded)

/** Rethrows an error of a listener outside the reload, so that the reload does not fail and the other listeners still run. */
async function notify(listener: Listener, result: ReloadResult): Promise<void> {
  try {
    await listener(result)
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
  }
}
