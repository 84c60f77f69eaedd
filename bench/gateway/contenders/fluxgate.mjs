// @ts-check
/** The gateway as `fluxgate gateway` runs it, with one limit. */
import { loadConfig } from '../../../dist/app/config.js'
import { createGateway } from '../../../dist/app/create-gateway.js'

const limit = { name: 'RateLimiter', args: { bands: [{ capacity: 1_000_000_000, window: '1m' }], keyResolver: 'ip' } }
const uri = `http://127.0.0.1:${process.env.UPSTREAM_PORT}`
const routes = [{ id: 'api', uri, predicates: ['Path=/api/**'], filters: [limit] }]
const env = { FLUXGATE_GATEWAY_ROUTES: JSON.stringify(routes) }
const { server } = await createGateway(await loadConfig({ env, cwd: new URL('.', import.meta.url).pathname }))
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.send?.({ port: typeof address === 'object' ? address?.port : 0 })
})
process.on('message', () => process.send?.({ cpu: process.cpuUsage() }))
