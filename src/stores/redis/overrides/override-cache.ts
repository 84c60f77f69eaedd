import { createBuckets, Rows } from '../../../algorithms/index.js'
import type { BucketGroup, Charge } from '../../../core/bucket-store.js'
import type { LastEdit, Operation } from '../operation.js'
import { expiresFlag } from './encoding.js'
import { editKey } from './keys.js'
import { parseEdit } from './last-edit.js'
import { RecentKeys } from './recent-keys.js'

/** A charge whose group comes from the cache, so that the script does not look up an override. */
export interface CachedCharge extends Charge {
  readonly isCached?: true
}

/** The result of looking up the override of one key. */
export interface LookupResult {
  readonly override: Buffer | undefined
  /** The last edit that the call relied on. */
  readonly edit: LastEdit
  /** In ticks of the store. */
  readonly now: number
}

/**
 * Caches which keys have an override and which have none. Cached keys need no lookup. Each call compares the last edit once; if
 * there was another edit since, the call changes nothing and reports it, so that decisions never use a stale entry.
 */
export class OverrideCache {
  /** The last edit that the entries include. */
  edit: LastEdit
  /** The `ActiveGenerations.version` of the entries. */
  readonly version: object
  readonly #groups: RecentKeys<BucketGroup>

  constructor(edit: LastEdit, version: object, maxKeys: number) {
    this.edit = edit
    this.version = version
    this.#groups = new RecentKeys(maxKeys)
  }

  /** Replaces the groups of cached keys. Returns the same operation if none of its keys is cached. */
  applyTo(operation: Operation): Operation {
    if (operation.type !== 'CHARGE' && operation.type !== 'PEEK') return operation
    let items: CachedCharge[] | undefined
    for (let i = 0; i < operation.items.length; i++) {
      const item = operation.items[i] as Charge
      if (!item.group.hasOverrides) continue
      const { key, permits, maxWaitTicks, policy, shadow, hold } = item
      const group = this.#groups.get(item.group, key)
      if (group === undefined) continue
      items ??= [...operation.items]
      items[i] = { group, key, permits, maxWaitTicks, policy, shadow, hold, isCached: true }
    }
    return items === undefined ? operation : { type: operation.type, items }
  }

  /** Drops the edited key. Returns false if earlier edits were missed, so that any entry may be stale. */
  applyEdit(record: string): boolean {
    const { previousId, key } = parseEdit(record)
    if (previousId !== parseEdit(this.edit.known).id) return false
    this.#groups.deleteAll(key)
    this.edit = { key: this.edit.key, known: record }
    return true
  }

  /** Caches the group of a key: that of its override, or `rule` if it has none. Ignored if there was an edit since the lookup. */
  add(rule: BucketGroup, key: string, group: BucketGroup, { override, edit, now }: LookupResult): void {
    if (edit === this.edit && (override === undefined || isCacheable(group, override, now)))
      this.#groups.set(rule, key, group)
  }
}

/** The script must see the override if it denies, if it expires, and while its starting balance may be needed. */
const isCacheable = ({ listed, bands }: BucketGroup, override: Buffer, now: number): boolean =>
  listed !== 'DENY' &&
  ((override[0] as number) & expiresFlag) === 0 &&
  bands.every((band) => band.spent === undefined || createBuckets(band, new Rows()).expiresAt(0, band) <= now)

const maxKeys = 200_000
/** On a cluster there is one cache per slot. */
const maxKeysPerSlot = 64

export interface OverrideCachesOptions {
  readonly prefix: string
  readonly isCluster: boolean
  /** Returns the current `ActiveGenerations.version`. */
  readonly version: () => object
}

/** One cache per route of calls: one in total, or on a cluster one per slot, because edits are recorded per slot there. */
export class OverrideCaches {
  readonly #options: OverrideCachesOptions
  readonly #byRoute = new Map<number, OverrideCache>()

  constructor(options: OverrideCachesOptions) {
    this.#options = options
  }

  forRoute(route: number): OverrideCache {
    const cache = this.#byRoute.get(route)
    return cache?.version === this.#options.version() ? cache : this.#create(route, cache?.edit.known ?? '')
  }

  /**
   * Invalidates what an edit has changed. If several calls report the same edit, only the first one, which relied on the current
   * `edit` of the cache, has an effect.
   */
  applyEdit(route: number, reliedOn: LastEdit, record: string): void {
    const cache = this.forRoute(route)
    if (cache.edit === reliedOn && !cache.applyEdit(record)) this.#create(route, record)
  }

  #create(route: number, record: string): OverrideCache {
    const { prefix, isCluster, version } = this.#options
    const edit = { key: editKey(prefix, isCluster ? route : undefined), known: record }
    const cache = new OverrideCache(edit, version(), isCluster ? maxKeysPerSlot : maxKeys)
    this.#byRoute.set(route, cache)
    return cache
  }
}

const maxLastKnown = 50_000

/** The overrides that this process has used, for decisions while Redis is unavailable. */
export class LastKnownOverrides {
  readonly #entries = new RecentKeys<{ readonly group: BucketGroup; readonly expiresAtMs: number | undefined }>(
    maxLastKnown,
  )

  set(rule: BucketGroup, key: string, group: BucketGroup, expiresAtMs: number | undefined): void {
    this.#entries.set(rule, key, { group, expiresAtMs })
  }

  delete(rule: BucketGroup, key: string): void {
    this.#entries.delete(rule, key)
  }

  get(rule: BucketGroup, key: string, nowMs: number): BucketGroup | undefined {
    const { group, expiresAtMs = Number.POSITIVE_INFINITY } = this.#entries.get(rule, key) ?? {}
    return expiresAtMs > nowMs ? group : undefined
  }
}
