import type { RedisConnection } from '../client/connection.js'
import { Place } from './place.js'

interface Channel {
  /** In the order of their requests. */
  readonly places: Place[]
  /** Ends the subscription. `undefined` until the subscription is confirmed. */
  stop: (() => Promise<void>) | undefined
  timer: NodeJS.Timeout | undefined
}

/** How long a subscription outlives its last waiting caller, because callers often return. */
const lingerMs = 10_000
/** The polling interval while there is no subscription. */
const pollMs = 100

/**
 * Wakes waiting callers when a message announces a release. Only one caller per process is woken for each message, to avoid
 * a thundering herd. Queued (fair) callers are woken by their id.
 */
export class WakeUps {
  readonly #connection: Pick<RedisConnection, 'subscribe'>
  readonly #oneAtATime: boolean
  readonly #channels = new Map<string, Channel>()

  /** `oneAtATime` is true for locks, where a release can serve only one caller. */
  constructor(connection: Pick<RedisConnection, 'subscribe'>, oneAtATime: boolean) {
    this.#connection = connection
    this.#oneAtATime = oneAtATime
  }

  /**
   * Adds a waiting caller. It is woken once the subscription is active, because a release before that was not announced to
   * it. If another caller already waits there, that caller was or will be woken instead.
   */
  join(name: string, id: string, fair: boolean): Place {
    const place = new Place(name, id, fair)
    const channel = this.#channels.get(name) ?? this.#open(name)
    const isServed = this.#oneAtATime && !fair && channel.places.some((other) => !other.fair)
    channel.places.push(place)
    if (channel.stop !== undefined && !isServed) place.call()
    return place
  }

  /** Resolves with true if the caller was woken. A caller that was woken and does not use the release must wake the next one. */
  wait(place: Place, ms: number, signal: AbortSignal | undefined): Promise<boolean> {
    const isSubscribed = this.#channels.get(place.channel)?.stop !== undefined
    return place.wait(isSubscribed ? ms : Math.min(ms, pollMs), signal)
  }

  passOn({ channel }: Place): void {
    this.#call(channel, '')
  }

  /** Wakes all callers. */
  callAll(): void {
    for (const { places } of this.#channels.values()) for (const place of places) place.call()
  }

  leave(place: Place): void {
    const channel = this.#channels.get(place.channel)
    if (channel === undefined) return
    channel.places.splice(channel.places.indexOf(place), 1)
    if (place.isCalled) this.passOn(place)
    if (channel.places.length === 0) this.#scheduleCleanup(place.channel, channel)
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
      .finally(() => this.#scheduleCleanup(name, channel))
  }

  /** Later ends an unused subscription, or retries one that failed. */
  #scheduleCleanup(name: string, channel: Channel): void {
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

  /** Wakes the caller with the id, or without an id the first that is not queued. An unknown id is in another process. */
  #call(name: string, id: string): void {
    const places = this.#channels.get(name)?.places ?? []
    places.find((place) => !place.isCalled && (id === '' ? !place.fair : place.id === id))?.call()
  }
}
