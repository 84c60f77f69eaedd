import { rateLimit } from 'fluxgate-js/fetch'

const limit = rateLimit({
  id: 'login',
  capacity: 3,
  window: '1m',
  trustedProxies: 1,
  remoteAddress: () => '127.0.0.1',
})

export const POST = limit.wrap(() => new Response('Welcome.\n'))
