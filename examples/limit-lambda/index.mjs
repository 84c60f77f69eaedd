import { createFluxGate } from 'fluxgate-js'
import { rateLimit } from 'fluxgate-js/fetch'

// Opened once per instance. Lambda runs many instances with one request each, so the buckets must be in Redis.
const gate = await createFluxGate({
  store: process.env.REDIS_URI ?? 'redis://127.0.0.1:6379',
  rules: {
    id: 'lambda',
    rules: [
      { id: 'per-address', bands: [{ label: 'minute', capacity: 60, window: '1m' }] },
      { id: 'login', path: '/login', method: 'POST', bands: [{ label: 'tries', capacity: 3, window: '1m' }] },
    ],
  },
})

const limit = rateLimit({ gate, remoteAddress: (_request, event) => event.requestContext.http.sourceIp })

const respond = limit.wrap(async (request) => {
  const { pathname } = new URL(request.url)
  return new Response(pathname === '/login' ? 'Welcome.\n' : 'Hello.\n')
})

/** For events of API Gateway HTTP APIs and of function URLs (payload version 2.0). */
export async function handler(event) {
  const response = await respond(requestOf(event), event)
  const cookies = response.headers.getSetCookie()
  response.headers.delete('set-cookie')
  const headers = Object.fromEntries(response.headers)
  return { statusCode: response.status, headers, cookies, body: await response.text() }
}

function requestOf({ rawPath, rawQueryString, headers, body, isBase64Encoded, requestContext }) {
  const { domainName, http } = requestContext
  const url = `https://${domainName}${rawPath}${rawQueryString ? `?${rawQueryString}` : ''}`
  const isBodyAllowed = http.method !== 'GET' && http.method !== 'HEAD'
  const content = body && isBase64Encoded ? Buffer.from(body, 'base64') : body
  return new Request(url, { method: http.method, headers, body: isBodyAllowed ? content : undefined })
}
