import type { LastEdit } from '../work.js'
import { editKey } from './hashes.js'
import { OverrideCache } from './override-cache.js'

/** Of so many identities it is remembered whether they have an override; on a cluster, of so many in a slot. */
const most = 200_000
const mostInSlot = 64

export interface RouteCachesOptions {
  readonly prefix: string
  readonly isCluster: boolean
  /** The same as long as no rule has other generations of overrides, or other ranges. */
  readonly generations: () => object
}

/** What is believed of overrides, by where calls go: on a cluster, where each is about one slot, edits are told there. */
export class RouteCaches {
  readonly #options: RouteCachesOptions
  readonly #byRoute = new Map<number, OverrideCache>()

  constructor(options: RouteCachesOptions) {
    this.#options = options
  }

  of(route: number): OverrideCache {
    const beliefs = this.#byRoute.get(route)
    if (beliefs?.generations === this.#options.generations()) return beliefs
    return this.#begin(route, beliefs?.edit.known ?? '')
  }

  /**
   * After the edit that a call relied on there was another: what that was about is not believed any more, or nothing if there
   * may have been several. Of calls that find out together, the first one says it.
   */
  edited(route: number, reliedOn: LastEdit, known: string): void {
    const beliefs = this.of(route)
    if (beliefs.edit === reliedOn && !beliefs.follow(known)) this.#begin(route, known)
  }

  #begin(route: number, known: string): OverrideCache {
    const { prefix, isCluster, generations } = this.#options
    const edit = { key: editKey(prefix, isCluster ? route : undefined), known }
    const beliefs = new OverrideCache(edit, generations(), isCluster ? mostInSlot : most)
    this.#byRoute.set(route, beliefs)
    return beliefs
  }
}
