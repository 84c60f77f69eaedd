import type { Departure } from '../core/waiting-room.js'

/** The time that a request spends in the waiting room, if it has to. Handed to the limiter as its options are. */
export class Stay {
  /** How it ended; undefined if the request never had to wait. */
  left: Promise<Departure> | undefined
  #leave: (how: Departure) => void = () => {}

  readonly onEnter = (): void => {
    this.left = new Promise((resolve) => {
      this.#leave = resolve
    })
  }

  readonly onLeave = (how: Departure): void => this.#leave(how)
}
