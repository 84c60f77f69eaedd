import { cellsOf } from '../../algorithms/index.js'
import type { BucketGroup } from '../../core/bucket-store.js'
import type { Band } from '../../core/rule.js'
import type { CachedCharge } from './overrides/override-cache.js'
import type { LastEdit, Lookup, Names, Work } from './work.js'

/** The distinct buckets of a batch, cells before logs, and the overrides to look up. */
export class NamedBuckets {
  /** For each band of each work: the number of its bucket, negative for a log, and the number of its band. */
  readonly claimed: number[] = []
  readonly bands = new Map<Band, number>()
  readonly lookups: Lookup[] = []
  readonly hashes: string[] = []
  /** True if a rule has overrides. */
  mayOverride = false
  /** True if a claim uses the bucket of an override directly. */
  namesOverrides = false
  /** Per lookup: the number of its work, the number of its first band there, and where the claim's bands begin in `claimed`. */
  readonly #places: number[] = []
  readonly #names: Names
  readonly #cells = new Map<string, number>()
  readonly #logs = new Map<string, number>()
  /** The first work that uses each bucket. */
  readonly #namedBy: number[] = []
  /** For each work: true if it shares a bucket with another work or uses a log. */
  readonly #shares: boolean[]

  constructor(batch: readonly Work[], names: Names) {
    this.#names = names
    this.#shares = new Array<boolean>(batch.length).fill(false)
    for (let index = 0; index < batch.length; index++) this.#add(batch[index] as Work, index)
  }

  /** Includes the key of the last edit, which is read together with the cells. */
  get cells(): number {
    return this.#cells.size + (this.mayOverride ? 1 : 0)
  }

  keys(edit: LastEdit): string[] {
    return [...this.#cells.keys(), ...(this.mayOverride ? [edit.key] : []), ...this.#logs.keys()]
  }

  /** Logs are numbered after all cells. */
  keyAt(at: number): number {
    const place = this.claimed[at] as number
    return place < 0 ? this.cells - place : place
  }

  /** Per lookup: the number of its work, of its first band there, how many it has, the first band and the first bucket. */
  looks(): number[] {
    const places = this.#places
    return this.lookups.flatMap(({ work, claim }, i) => {
      const [index, before, at] = places.slice(3 * i, 3 * i + 3) as [number, number, number]
      const { length } = (work.claims[claim] as Work['claims'][number]).group.bands
      // The bands of a group are numbered together, one after the other.
      return length === 0
        ? [index, before, 0, 0, 0]
        : [index, before, length, this.claimed[at + 1] as number, this.keyAt(at)]
    })
  }

  /** Leases are stored next to the numbers of a bucket, so they cannot use the simple write path. */
  isAlone({ what }: Work, index: number): boolean {
    return !this.#shares[index] && what !== 'LEASE' && what !== 'SETTLE'
  }

  #add(work: Work, index: number): void {
    let before = 0
    for (let claim = 0; claim < work.claims.length; claim++) {
      const { group, key, isCached } = work.claims[claim] as Partial<CachedCharge> & Work['claims'][number]
      if (isCached) this.mayOverride = true
      else if (group.hasOverrides && isLookedUp(work, claim)) {
        this.mayOverride = true
        this.#places.push(index + 1, before + 1, this.claimed.length)
        const { hash, otherwise } = this.#names.overrideOf(group, key)
        this.lookups.push({ work, claim, otherwise })
        this.hashes.push(hash)
      }
      if (group.insteadOf !== undefined) this.namesOverrides = true
      for (let band = 0; band < group.bands.length; band++) this.#name(group, key, band, index)
      before += group.bands.length
    }
  }

  #name(group: BucketGroup, key: string, index: number, work: number): void {
    const band = group.bands[index] as Band
    const name = this.#names.keyOf(group, key, index)
    if (cellsOf(band) === undefined) {
      this.#shares[work] = true
      this.claimed.push(-placeIn(this.#logs, name), placeIn(this.bands, band))
      return
    }
    const seen = this.#cells.size
    const place = placeIn(this.#cells, name)
    if (this.#cells.size > seen) this.#namedBy[place] = work
    else {
      this.#shares[work] = true
      this.#shares[this.#namedBy[place] as number] = true
    }
    this.claimed.push(place, placeIn(this.bands, band))
  }
}

/** A refund with `grantedAt` and a backdate address known buckets, so they need no lookup. */
const isLookedUp = ({ what, claims }: Work, claim: number): boolean =>
  what === 'REFUND' ? claims[claim]?.grantedAt === undefined : what !== 'BACKDATE'

/** The number of an item, from 1, in order of first use. */
function placeIn<T>(places: Map<T, number>, item: T): number {
  const place = places.get(item)
  if (place !== undefined) return place
  places.set(item, places.size + 1)
  return places.size
}
