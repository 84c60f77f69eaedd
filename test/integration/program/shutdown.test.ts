/** Connections without a request do not delay a shutdown. The drain timeout is longer than the test timeout. */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { expect, it, onTestFinished } from 'vitest'
import { ApiServer } from '../../../src/server/api-server.js'
import { ask, echoUpstream, gatewayTo } from '../../fixtures/test-gateway.js'
import { selfSigned } from '../../servers/self-signed.js'

const pair = selfSigned()

interface Stoppable {
  readonly port: number
  close(): Promise<void>
}

async function gateway(isSecure: boolean): Promise<Stoppable> {
  const directory = mkdtempSync(join(tmpdir(), 'fluxgate-shutdown-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const files = { cert: join(directory, 'cert.pem'), key: join(directory, 'key.pem') }
  writeFileSync(files.cert, pair.cert)
  writeFileSync(files.key, pair.key)
  const settings = { drainTimeout: '10m', ...(isSecure ? { tls: files } : {}) }
  const { port, running } = await gatewayTo(await echoUpstream(), { gateway: settings })
  return { port, close: () => running.close() }
}

async function server(isSecure: boolean): Promise<Stoppable> {
  const started = new ApiServer({ routes: [], ...(isSecure ? { tls: pair } : {}) })
  const { port } = await started.listen({ port: 0 })
  return { port, close: () => started.close(600_000) }
}

/** A response shows that the connections opened before the request have been accepted. */
async function answered(port: number, isSecure: boolean): Promise<void> {
  if (!isSecure) await ask(`http://127.0.0.1:${port}/`)
  else {
    const asked = request({ host: '127.0.0.1', port, ca: pair.cert, agent: false }).end()
    const [response] = await once(asked, 'response')
    response.resume()
  }
}

it.each([
  ['gateway', false, gateway],
  ['gateway with TLS', true, gateway],
  ['API server', false, server],
  ['API server with TLS', true, server],
] as const)('%s: unused connections are closed when it stops', async (_, isSecure, start) => {
  const { port, close } = await start(isSecure)
  const sockets: Socket[] = []
  const open = async (socket: Socket, event: string, text = ''): Promise<void> => {
    sockets.push(socket.on('error', () => {}))
    onTestFinished(() => void socket.destroy())
    await once(socket, event)
    socket.resume().write(text)
  }
  await open(connect(port, '127.0.0.1'), 'connect')
  await open(connect(port, '127.0.0.1'), 'connect', 'G')
  if (isSecure) await open(connectTls({ port, host: '127.0.0.1', ca: pair.cert }), 'secureConnect')
  await answered(port, isSecure)
  const closed = sockets.map((socket) => once(socket, 'close'))
  await close()
  await Promise.all(closed)
  expect(sockets.every(({ destroyed }) => destroyed)).toBe(true)
})
