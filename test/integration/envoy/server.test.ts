import { once } from 'node:events'
import { connect } from 'node:http2'
import { credentials, type ServiceError, status } from '@grpc/grpc-js'
import { loadFileDescriptorSetFromBuffer } from '@grpc/proto-loader'
import { expect, it, onTestFinished } from 'vitest'
import { WireWriter } from '../../../src/envoy/protobuf/wire-writer.js'
import type { RuleSetInput } from '../../../src/rules/schema/input.js'
import { selfSigned } from '../../servers/self-signed.js'
import { clientOf, descriptor, methodOf, statusOf } from './rate-limit-client.js'
import { rateLimitServer } from './test-rate-limit-server.js'

const rules: RuleSetInput = {
  id: 'edge',
  rules: [
    { id: 'many', limitScope: 'GLOBAL', bands: [{ capacity: 1_000_000, window: '1h' }] },
    {
      id: 'waits',
      when: { 'attributes.wait': 'yes' },
      limitScope: 'GLOBAL',
      onLimitExceed: 'WAIT_FOR_REFILL',
      maxWaitMs: 60_000,
      bands: [{ capacity: 1, window: '10s' }],
    },
  ],
}
const some = [descriptor('a', 'b')]
const waiting = [descriptor('wait', 'yes')]

it('answers health checks for the server and the service, and not for others', async () => {
  const { call } = await rateLimitServer(rules)
  const check = (service: string) => call('/grpc.health.v1.Health/Check', { service })
  for (const service of ['', 'ratelimit', 'envoy.service.ratelimit.v3.RateLimitService'])
    expect(await check(service)).toEqual({ status: 'SERVING' })
  expect(await statusOf(check('other'))).toBe('NOT_FOUND')
})

it('reports changes of the health to watchers', async () => {
  const { client, server } = await rateLimitServer(rules)
  const path = '/grpc.health.v1.Health/Watch'
  const { requestSerialize, responseDeserialize } = methodOf(path)
  const watch = (service: string) => {
    const seen: string[] = []
    const call = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, { service })
    const ended = new Promise<string>((resolve) =>
      call.once('error', (error: ServiceError) => resolve(status[error.code] ?? '')),
    )
    call.on('data', (reply: { status: string }) => seen.push(reply.status))
    return { seen, ended, call }
  }
  const known = watch('ratelimit')
  const unknown = watch('other')
  await expect.poll(() => [known.seen, unknown.seen]).toEqual([['SERVING'], ['SERVICE_UNKNOWN']])
  unknown.call.cancel()
  server.drain()
  expect(await known.ended).toBe('UNAVAILABLE')
  expect(known.seen).toEqual(['SERVING', 'NOT_SERVING'])
})

it.each(['v1', 'v1alpha'])('describes its services by reflection %s', async (version) => {
  const { client } = await rateLimitServer(rules)
  const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`
  const { requestSerialize, responseDeserialize } = methodOf(path)
  const call = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize)
  const ask = async (request: object) => {
    call.write(request)
    const [reply] = await once(call, 'data')
    return reply
  }
  const { list_services_response: list } = await ask({ list_services: '' })
  expect(list.service.map(({ name }: { name: string }) => name)).toEqual([
    'envoy.service.ratelimit.v3.RateLimitService',
    'grpc.health.v1.Health',
    'grpc.reflection.v1.ServerReflection',
    'grpc.reflection.v1alpha.ServerReflection',
  ])
  const symbol = 'envoy.service.ratelimit.v3.RateLimitService.ShouldRateLimit'
  const { file_descriptor_response: files } = await ask({ file_containing_symbol: symbol })
  const set = new WireWriter()
  for (const file of files.file_descriptor_proto) set.bytes(1, file)
  const loaded = loadFileDescriptorSetFromBuffer(set.finish())
  expect(loaded).toHaveProperty(['envoy.service.ratelimit.v3.RateLimitService', 'ShouldRateLimit'])
  const byName = await ask({ file_by_filename: 'google/protobuf/struct.proto' })
  expect(byName.file_descriptor_response.file_descriptor_proto).toHaveLength(1)
  expect(await ask({ file_by_filename: 'no.proto' })).toMatchObject({ error_response: { error_code: 5 } })
  expect(await ask({})).toMatchObject({ error_response: { error_code: 3 } })
  call.end()
  await once(call, 'end')
})

it('answers unknown methods and requests that are not gRPC', async () => {
  const { client, port } = await rateLimitServer(rules)
  const { requestSerialize, responseDeserialize } = methodOf('/grpc.health.v1.Health/Check')
  const unknown = new Promise((resolve, reject) =>
    client.makeUnaryRequest('/a.B/C', requestSerialize, responseDeserialize, {}, (error) =>
      error ? reject(error) : resolve(undefined),
    ),
  )
  expect(await statusOf(unknown)).toBe('UNIMPLEMENTED')
  const session = connect(`http://127.0.0.1:${port}`)
  onTestFinished(() => session.destroy())
  const statusOfRequest = async (headers: object) => {
    const [response] = await once(session.request({ ...headers }).resume(), 'response')
    return response[':status']
  }
  expect(await statusOfRequest({ ':method': 'GET', ':path': '/' })).toBe(405)
  expect(await statusOfRequest({ ':method': 'POST', ':path': '/', 'content-type': 'application/json' })).toBe(415)
})

it('closes gracefully: calls in flight are answered, and new ones are refused', async () => {
  const { ask, clock, gate, server, port } = await rateLimitServer(rules)
  const session = connect(`http://127.0.0.1:${port}`)
  onTestFinished(() => session.destroy())
  await once(session, 'connect')
  const goaway = once(session, 'goaway')
  await ask('edge', waiting)
  const held = ask('edge', waiting)
  await expect.poll(async () => (await gate.health()).waiting).toBe(1)
  const closed = server.close(10_000)
  expect((await goaway)[0]).toBe(0)
  clock.advance(10_000)
  expect(await held).toMatchObject({ overall_code: 'OK' })
  await closed
  expect(await statusOf(clientOf(port).ask('edge', some))).toBe('UNAVAILABLE')
})

it('ends calls that do not end by themselves after the grace period', async () => {
  const { ask, gate, server } = await rateLimitServer(rules)
  await ask('edge', waiting)
  const held = statusOf(ask('edge', waiting))
  await expect.poll(async () => (await gate.health()).waiting).toBe(1)
  await server.close(20)
  expect(await held).toBe('UNAVAILABLE')
  expect((await gate.health()).waiting).toBe(0)
})

it('serves TLS', async () => {
  const { cert, key } = selfSigned()
  const { port } = await rateLimitServer(rules, { tls: { cert, key } })
  const secure = credentials.createSsl(Buffer.from(cert), null, null, { checkServerIdentity: () => undefined })
  expect(await statusOf(clientOf(port, secure).ask('edge', some))).toBe('OK')
})

it('closes connections at their maximum age without failing a call', async () => {
  const { ask, port } = await rateLimitServer(rules, {
    limits: { maxConnectionAgeMs: 40, checkMs: 5, graceMs: 10_000 },
  })
  let goaways = 0
  const session = connect(`http://127.0.0.1:${port}`)
  onTestFinished(() => session.destroy())
  session.on('goaway', () => {
    goaways += 1
  })
  const results: string[] = []
  while (!session.closed || results.length < 300)
    results.push(...(await Promise.all([1, 2, 3].map(() => statusOf(ask('edge', some))))))
  expect(results.filter((result) => result !== 'OK')).toEqual([])
  expect(goaways).toBeGreaterThan(0)
})
