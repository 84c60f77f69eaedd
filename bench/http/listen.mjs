// @ts-check
/** Listens on a free port and sends it to the parent process. */
export function listen(/** @type {import('node:net').Server} */ server) {
  server.listen(0, '127.0.0.1', () => tellPort(server))
}

export function tellPort(/** @type {import('node:net').Server} */ server) {
  process.send?.({ port: /** @type {import('node:net').AddressInfo} */ (server.address()).port })
}
