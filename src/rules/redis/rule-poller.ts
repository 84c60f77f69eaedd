import type { Hold } from '../../redis/lock/hold.js'
import type { Holdable } from '../../redis/lock/holdable.js'

/** Elects one process per lock name to poll for changes, until it exits or its lease expires. */
export class RulePoller {
  readonly #lock: Pick<Holdable, 'tryAcquire'>
  readonly #name: string
  #hold: Hold | undefined

  constructor(lock: Pick<Holdable, 'tryAcquire'>, name: string) {
    this.#lock = lock
    this.#name = name
  }

  get isHeld(): boolean {
    return this.#hold?.isHeld === true
  }

  /** If Redis is unavailable, every process polls. */
  async shouldPoll(): Promise<boolean> {
    if (this.isHeld) return true
    try {
      this.#hold = await this.#lock.tryAcquire(this.#name)
    } catch {
      return true
    }
    return this.#hold !== undefined
  }

  release(): void {
    void this.#hold?.release()
    this.#hold = undefined
  }
}
