import { rateLimit } from 'fluxgate-js/fetch'

const limit = rateLimit({
  id: 'login',
  capacity: 3,
  window: '1m',
  remoteAddress: (_request, info) => info.remoteAddr.hostname,
})

const options = {
  port: Number(Deno.env.get('PORT') ?? 3000),
  hostname: '127.0.0.1',
  onListen: ({ port }) => console.log(`http://127.0.0.1:${port}`),
}
Deno.serve(
  options,
  limit.wrap(() => new Response('Welcome.\n')),
)
