// @ts-check
/** The gateway as started by `fluxgate gateway`, with one limit. */
import { loadConfig } from '../../../dist/config/config.js'
import { createGateway } from '../../../dist/program/gateway/create-gateway.js'
import { most, windowMs } from '../answer.mjs'
import { listen } from '../listen.mjs'

const limit = { name: 'RateLimiter', args: { bands: [{ capacity: most, window: `${windowMs}ms` }], keyResolver: 'ip' } }
const uri = `http://127.0.0.1:${process.argv[2]}`
const routes = [{ id: 'api', uri, predicates: ['Path=/api/**'], filters: [limit] }]
const env = { FLUXGATE_GATEWAY_ROUTES: JSON.stringify(routes) }
const { server } = await createGateway(await loadConfig({ env, cwd: new URL('.', import.meta.url).pathname }))
listen(server)
