import fastify from 'fastify'
import { rateLimit } from 'fluxgate-js/fastify'

const app = fastify()
await app.register(rateLimit, { id: 'per-address', capacity: 60, window: '1m' })

app.get('/', () => 'Hello.\n')
// Replaces the limit of the plugin for this route.
app.post('/login', { config: { rateLimit: { id: 'login', capacity: 3, window: '1m' } } }, () => 'Welcome.\n')

console.log(await app.listen({ port: Number(process.env.PORT ?? 3000), host: '127.0.0.1' }))

process.once('SIGTERM', () => app.close())
