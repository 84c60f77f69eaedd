/** Entries that expire. Each call removes only a few of them, so that none takes long, and no timer is needed. */
export class ExpiringMap<Value> {
  readonly #entries = new Map<string, Value>()
  readonly #hasExpired: (value: Value, now: number) => boolean
  readonly #max: number
  /** The keys that are inspected next. */
  #inspection = this.#entries.keys()

  /** `hasExpired` is called once for every entry that is inspected or looked up. */
  constructor(max: number, hasExpired: (value: Value, now: number) => boolean) {
    this.#max = max
    this.#hasExpired = hasExpired
  }

  /** An entry that has expired is removed. */
  get(key: string, now: number): Value | undefined {
    const value = this.#entries.get(key)
    if (value === undefined || !this.#hasExpired(value, now)) return value
    this.#entries.delete(key)
    return undefined
  }

  set(key: string, value: Value): void {
    this.#entries.set(key, value)
  }

  /** Inspects a few entries, and more of them without room. Returns true if there is room for another entry. */
  makeRoom(now: number): boolean {
    for (let count = this.#entries.size < this.#max ? inspected : inspectedIfFull; count > 0; count--) {
      const { value: key, done } = this.#inspection.next()
      if (done) {
        this.#inspection = this.#entries.keys()
        break
      }
      this.get(key, now)
    }
    return this.#entries.size < this.#max
  }

  clear(): void {
    this.#entries.clear()
  }
}

const inspected = 4
const inspectedIfFull = 1_000
