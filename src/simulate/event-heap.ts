/** A binary min-heap of events by time. Events of the same tick leave it in any order. */
export class EventHeap<Event extends { readonly at: number }> {
  readonly #events: Event[] = []

  get size(): number {
    return this.#events.length
  }

  /** The earliest event. */
  get first(): Event | undefined {
    return this.#events[0]
  }

  add(event: Event): void {
    const events = this.#events
    let place = events.length
    while (place > 0) {
      const parent = (place - 1) >>> 1
      if ((events[parent] as Event).at <= event.at) break
      events[place] = events[parent] as Event
      place = parent
    }
    events[place] = event
  }

  /** Removes and returns the earliest event if it is not after `until`. */
  takeUntil(until: number): Event | undefined {
    const [first] = this.#events
    if (first === undefined || first.at > until) return undefined
    const last = this.#events.pop() as Event
    if (last !== first) this.#sink(last)
    return first
  }

  #sink(event: Event): void {
    const events = this.#events
    let place = 0
    for (;;) {
      let child = 2 * place + 1
      if (child >= events.length) break
      if (child + 1 < events.length && (events[child + 1] as Event).at < (events[child] as Event).at) child += 1
      if ((events[child] as Event).at >= event.at) break
      events[place] = events[child] as Event
      place = child
    }
    events[place] = event
  }
}
