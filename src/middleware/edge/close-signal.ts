/** The part of an `EventEmitter` that is used. */
export interface ClosingEmitter {
  once(event: string, listener: () => void): unknown
}

const signals = new WeakMap<ClosingEmitter, AbortSignal>()

/**
 * A signal that aborts when a response, a socket or a client closes. It is the same for every call, so that the many requests or
 * messages of one connection add a single listener.
 */
export function closeSignal(emitter: ClosingEmitter, event = 'close'): AbortSignal {
  let signal = signals.get(emitter)
  if (signal === undefined) {
    const closing = new AbortController()
    emitter.once(event, () => closing.abort())
    signal = closing.signal
    signals.set(emitter, signal)
  }
  return signal
}
