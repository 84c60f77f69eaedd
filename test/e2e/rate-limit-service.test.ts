/** Envoy's rate limit service of `fluxgate serve` and `fluxgate start` as processes. */
import { credentials, Metadata } from '@grpc/grpc-js'
import { describe, expect, it } from 'vitest'
import { clientOf, descriptor, statusOf } from '../integration/envoy/rate-limit-client.js'
import { freePort } from '../servers/free-port.js'
import { selfSigned } from '../servers/self-signed.js'
import { freshPrefix, sharedRedis } from '../servers/shared-redis.js'
import { type Running, tempWorkspace } from './running-program.js'

const longTimeout = { FLUXGATE_STORE_TIMEOUT_MS: '5000' }
const some = [descriptor('tenant', 'acme')]

function withRules(capacity = 2) {
  const workspace = tempWorkspace()
  const bands = [{ capacity, window: '1d', algorithm: 'FIXED_WINDOW' }]
  workspace.write('rules.yaml', { id: 'edge', rules: [{ id: 'all', limitScope: 'GLOBAL', bands }] })
  return workspace
}

const portOf = (running: Running): number =>
  Number(/rate limit service: https?:\/\/127\.0\.0\.1:(\d+)/.exec(running.stdout())?.[1])

describe('the rate limit service as a process', () => {
  it.each([
    ['serve', ['serve', '--port', '0', '--grpc-port', '0']],
    ['start', ['start', '--port', '0', '--server-port', '0', '--grpc-port', '0']],
  ])('is served by fluxgate %s, and stops on SIGTERM', async (_, args) => {
    const running = await withRules().start(args)
    const { ask, call } = clientOf(portOf(running))
    for (const code of ['OK', 'OK', 'OVER_LIMIT']) expect((await ask('edge', some)).overall_code).toBe(code)
    expect(await call('/grpc.health.v1.Health/Check', { service: 'ratelimit' })).toEqual({ status: 'SERVING' })
    running.process.kill('SIGTERM')
    expect(await running.ended).toBe(0)
  })

  it('runs in several workers that share Redis, with TLS and a token', async () => {
    const workspace = withRules(10)
    const { cert, key } = selfSigned()
    workspace.write('cert.pem', cert)
    workspace.write('key.pem', key)
    workspace.write('fluxgate.yaml', {
      server: {
        workers: 2,
        grpc: { port: 0 },
        tls: { cert: 'cert.pem', key: 'key.pem' },
        checkToken: 'check',
        adminToken: 'admin',
      },
      store: { type: 'redis', uri: sharedRedis().uri, prefix: freshPrefix() },
    })
    const running = await workspace.start(['serve', '--port', '0'], longTimeout)
    const secure = credentials.createSsl(Buffer.from(cert), null, null, { checkServerIdentity: () => undefined })
    const withToken = (token: string) => {
      const metadata = new Metadata()
      metadata.set('authorization', `Bearer ${token}`)
      return metadata
    }
    const results = await Promise.all(
      Array.from({ length: 12 }, async (_, i) => {
        // A connection of its own, so that the workers share the calls.
        const { ask } = clientOf(portOf(running), credentials.combineChannelCredentials(secure))
        return (await ask('edge', some, {}, withToken(i % 2 === 0 ? 'check' : 'admin'))).overall_code
      }),
    )
    expect(results.filter((code) => code === 'OK')).toHaveLength(10)
    const { ask } = clientOf(portOf(running), secure)
    expect(await statusOf(ask('edge', some))).toBe('UNAUTHENTICATED')
    expect(await statusOf(ask('edge', some, {}, withToken('other')))).toBe('UNAUTHENTICATED')
    running.process.kill('SIGTERM')
    expect(await running.ended).toBe(0)
  })

  it('does not listen on other addresses than loopback without a token, unless this is configured', async () => {
    const workspace = withRules()
    const args = ['serve', '--port', '0', '--grpc-port', '0']
    const rejected = workspace.launch(args, { FLUXGATE_SERVER_GRPC_HOST: '0.0.0.0' })
    expect(await rejected.ended).toBe(2)
    expect(rejected.stderr()).toContain('The rate limit service cannot listen on 0.0.0.0 without a token')
    const open = { FLUXGATE_SERVER_GRPC_HOST: '0.0.0.0', FLUXGATE_SERVER_GRPC_AUTHENTICATION: 'NONE' }
    const running = await workspace.start(args, open)
    expect(await statusOf(clientOf(portOf(running)).ask('edge', some))).toBe('OK')
  })

  it('reports a port that is in use', async () => {
    const port = await freePort()
    const workspace = withRules()
    const args = ['serve', '--port', '0', '--grpc-port', String(port)]
    await workspace.start(args)
    const second = workspace.launch(args)
    expect(await second.ended).toBe(1)
    expect(second.stderr()).toContain(
      `Port ${port} on 127.0.0.1 is already in use. Stop the program that uses it, or choose another port: --grpc-port ${port + 1}, or FLUXGATE_SERVER_GRPC_PORT=${port + 1}.`,
    )
  })
})
