import { rateLimit } from 'fluxgate-js/fetch'

const limit = rateLimit({
  id: 'per-address',
  capacity: 60,
  window: '1m',
  // Next.js does not pass the address of the socket. The proxy in front of it appends the client address to X-Forwarded-For.
  trustedProxies: 1,
  remoteAddress: () => '127.0.0.1',
})

/** Runs before every request. Before Next.js 16, this is the function `middleware` of `middleware.js`. */
export async function proxy(request) {
  return (await limit(request)) ?? undefined
}

export const config = { matcher: '/((?!_next/).*)' }
