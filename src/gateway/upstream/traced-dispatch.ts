import { subscribe } from 'node:diagnostics_channel'

/** The names of the headers that a request has for its trace. Set while the gateway passes a request to undici. */
let traceFields: readonly string[] | undefined

let isSubscribed = false

/**
 * Passes a request to undici. If the OpenTelemetry instrumentation of undici is active, it starts a span for the request and
 * adds headers for it; those that the request already had are then removed, because an upstream ignores a request with two `traceparent` headers.
 */
export function tracedDispatch(fields: readonly string[], dispatch: () => void): void {
  if (!isSubscribed) subscribe('undici:request:create', removeReplaced)
  isSubscribed = true
  traceFields = fields
  try {
    dispatch()
  } finally {
    traceFields = undefined
  }
}

/** Listeners are called in the order of their subscription, so the instrumentation has added its headers. */
function removeReplaced(message: unknown): void {
  const { headers } = (message as { readonly request: { readonly headers: unknown } }).request
  if (traceFields === undefined || !Array.isArray(headers)) return
  const seen = new Set<string>()
  for (let i = headers.length - 2; i >= 0; i -= 2) {
    const name = String(headers[i]).toLowerCase()
    if (!traceFields.includes(name)) continue
    if (seen.has(name)) headers.splice(i, 2)
    seen.add(name)
  }
}
