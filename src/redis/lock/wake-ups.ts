import type { RedisConnection } from '../client/connection.js'
import { Place } from './place.js'

interface Channel {
  /** In the order of asking. */
  readonly places: Place[]
  /** Ends the subscription, once there is one. */
  stop: (() => Promise<void>) | undefined
  timer: NodeJS.Timeout | undefined
}

/** A channel is listened to for a while after the last one has left, because others come back. */
const lingerMs = 10_000
/** Where nothing can be heard, one has to look. */
const unheardMs = 100

/**
 * Who waits, and what wakes them: a message that something is free. One of each process tries then, not all of them. Those
 * in line are called by their id, because only one of them may.
 */
export class WakeUps {
  readonly #connection: Pick<RedisConnection, 'subscribe'>
  readonly #oneAtATime: boolean
  readonly #channels = new Map<string, Channel>()

  /** `oneAtATime`: what is free is of use to one only. */
  constructor(connection: Pick<RedisConnection, 'subscribe'>, oneAtATime: boolean) {
    this.#connection = connection
    this.#oneAtATime = oneAtATime
  }

  /**
   * The place is called as soon as nothing can be missed any more: what became free before that, one has to ask for. If
   * somebody waits there already, that one was or will be called for it.
   */
  join(name: string, id: string, fair: boolean): Place {
    const place = new Place(name, id, fair)
    const channel = this.#channels.get(name) ?? this.#open(name)
    const isServed = this.#oneAtATime && !fair && channel.places.some((other) => !other.fair)
    channel.places.push(place)
    if (channel.stop !== undefined && !isServed) place.call()
    return place
  }

  /** Resolves with whether it is this one's turn to try; if so, and it cannot use what is free, it has to pass it on. */
  wait(place: Place, ms: number, signal: AbortSignal | undefined): Promise<boolean> {
    const isHeard = this.#channels.get(place.channel)?.stop !== undefined
    return place.wait(isHeard ? ms : Math.min(ms, unheardMs), signal)
  }

  passOn({ channel }: Place): void {
    this.#call(channel, '')
  }

  /** So that everybody looks what has happened. */
  callAll(): void {
    for (const { places } of this.#channels.values()) for (const place of places) place.call()
  }

  leave(place: Place): void {
    const channel = this.#channels.get(place.channel)
    if (channel === undefined) return
    channel.places.splice(channel.places.indexOf(place), 1)
    if (place.isCalled) this.passOn(place)
    if (channel.places.length === 0) this.#checkLater(place.channel, channel)
  }

  #open(name: string): Channel {
    const channel: Channel = { places: [], stop: undefined, timer: undefined }
    this.#channels.set(name, channel)
    this.#listen(name, channel)
    return channel
  }

  #listen(name: string, channel: Channel): void {
    const callAll = (): void => {
      for (const place of channel.places) place.call()
    }
    this.#connection
      .subscribe(name, (id) => this.#call(name, id), callAll)
      .then(
        (stop) => {
          channel.stop = stop
          callAll()
        },
        () => {},
      )
      .finally(() => this.#checkLater(name, channel))
  }

  /** Whether there is still somebody to listen for, and whether it has to be tried again. */
  #checkLater(name: string, channel: Channel): void {
    clearTimeout(channel.timer)
    channel.timer = setTimeout(() => {
      if (channel.places.length > 0) {
        if (channel.stop === undefined) this.#listen(name, channel)
        return
      }
      this.#channels.delete(name)
      channel.stop?.().catch(() => {})
    }, lingerMs)
    channel.timer.unref()
  }

  /** Without an id, the first who is not in line; an id that is not known here waits elsewhere. */
  #call(name: string, id: string): void {
    const places = this.#channels.get(name)?.places ?? []
    places.find((place) => !place.isCalled && (id === '' ? !place.fair : place.id === id))?.call()
  }
}
