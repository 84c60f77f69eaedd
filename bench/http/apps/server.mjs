// @ts-check
import { createFluxGate } from '../../../dist/app/create-flux-gate.js'
import { createServer } from '../../../dist/app/create-server.js'
import { most } from '../answer.mjs'

const rules = { id: 'api', rules: [{ id: 'all', bands: [{ capacity: most, window: '1m' }] }] }
const server = createServer({ gate: await createFluxGate({ rules }) })
const { port } = await server.listen({ port: 0 })
process.send?.({ port })
