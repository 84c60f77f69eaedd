// @ts-check
/** A FluxGate server as a process of its own, on the port it is given: one rule, a thousand an hour for everybody. */

import { createFluxGate } from '../../dist/index.js'
import { createServer } from '../../dist/program/create-server.js'

const gate = await createFluxGate({
  rules: { id: 'api', rules: [{ id: 'all', limitScope: 'GLOBAL', bands: [{ capacity: 1_000, window: '1h' }] }] },
})
const { url } = await createServer({ gate }).listen({ port: Number(process.argv[2]) })
console.log(url)
