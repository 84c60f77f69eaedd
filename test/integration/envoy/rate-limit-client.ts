import { type ChannelCredentials, Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js'
import { loadFileDescriptorSetFromBuffer, type PackageDefinition } from '@grpc/proto-loader'
import { onTestFinished } from 'vitest'
import { WireWriter } from '../../../src/envoy/protobuf/wire-writer.js'
import { describeFiles } from '../../../src/envoy/reflection/file-descriptor.js'
import { protoFiles } from '../../../src/envoy/reflection/proto-files.js'

/** The definitions that the server publishes by reflection. */
export function publishedDefinitions(): PackageDefinition {
  const writer = new WireWriter()
  for (const { bytes } of describeFiles(protoFiles)) writer.bytes(1, bytes)
  return loadFileDescriptorSetFromBuffer(writer.finish(), {
    keepCase: true,
    enums: String,
    longs: Number,
    defaults: true,
  })
}

const definitions = publishedDefinitions()

export interface Descriptor {
  readonly entries: readonly { readonly key: string; readonly value: string }[]
  readonly limit?: object
  readonly hits_addend?: { readonly value: number | string }
  readonly is_negative_hits?: boolean
}

/** Entries from pairs of key and value: `descriptor('path', '/a', 'method', 'GET')`. */
export const descriptor = (...pairs: readonly string[]): Descriptor => ({
  entries: pairs.flatMap((key, i) => (i % 2 === 0 ? [{ key, value: pairs[i + 1] ?? '' }] : [])),
})

// biome-ignore lint/suspicious/noExplicitAny: tests compare it with literal values
type Reply = any

export interface RateLimitClient {
  /** Calls ShouldRateLimit. Rejects with a ServiceError. */
  ask(domain: string, descriptors: readonly Descriptor[], more?: object, metadata?: Metadata): Promise<Reply>
  /** Calls a unary method by its path. */
  call(path: string, request: object, metadata?: Metadata, deadline?: Date): Promise<Reply>
  readonly client: Client
}

/** A client of a server on this port. Closes after the test. */
export function clientOf(port: number, secure: ChannelCredentials = credentials.createInsecure()): RateLimitClient {
  const client = new Client(`127.0.0.1:${port}`, secure)
  onTestFinished(() => client.close())
  const call: RateLimitClient['call'] = (path, request, metadata = new Metadata(), deadline) =>
    new Promise((resolve, reject) => {
      const { requestSerialize, responseDeserialize } = methodOf(path)
      const options = deadline === undefined ? {} : { deadline }
      client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        metadata,
        options,
        (error, reply) => (error === null ? resolve(reply) : reject(error)),
      )
    })
  const path = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
  return {
    client,
    call,
    ask: (domain, descriptors, more = {}, metadata = undefined) =>
      call(path, { domain, descriptors, ...more }, metadata),
  }
}

/** The serializers of a method, from the published definitions. */
export function methodOf(path: string) {
  const [, service = '', name = ''] = path.split('/')
  const methods = definitions[service] as unknown as Readonly<Record<string, MethodDefinition>>
  return methods[name] as MethodDefinition
}

interface MethodDefinition {
  readonly requestSerialize: (request: object) => Buffer
  readonly responseDeserialize: (bytes: Buffer) => Reply
}

/** The name of the status with which a call fails; OK if it succeeds. */
export const statusOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'OK',
    (error: ServiceError) => status[error.code] ?? String(error),
  )
