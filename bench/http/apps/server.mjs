// @ts-check
import { createFluxGate } from '../../../dist/gate/create-flux-gate.js'
import { createServer } from '../../../dist/program/create-server.js'
import { most, windowMs } from '../answer.mjs'

const rules = { id: 'api', rules: [{ id: 'all', bands: [{ capacity: most, window: `${windowMs}ms` }] }] }
const server = createServer({ gate: await createFluxGate({ rules }) })
const { port } = await server.listen({ port: 0 })
process.send?.({ port })
