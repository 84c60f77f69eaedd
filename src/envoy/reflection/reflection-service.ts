import type { Method, StreamCall, StreamReceiver } from '../grpc/method.js'
import { GrpcError, statusCodes } from '../grpc/status.js'
import { WireReader } from '../protobuf/wire-reader.js'
import { WireWriter } from '../protobuf/wire-writer.js'
import { type DescribedFile, describeFiles } from './file-descriptor.js'
import { protoFiles } from './proto-files.js'

/** The numbers of the request fields, by name. A request has exactly one of them. */
const requests = { fileByName: 3, fileBySymbol: 4, extension: 5, extensionNumbers: 6, services: 7 } as const

/** More than any client asks in one call. */
const maxRequests = 1_000

/** grpc.reflection: describes the services, so that tools such as grpcurl need no .proto files. */
export const reflectionMethods: readonly (readonly [string, Method])[] = ['v1', 'v1alpha'].map((version) => [
  `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
  { kind: 'STREAM', open },
])

function open(call: StreamCall): StreamReceiver {
  let count = 0
  return {
    message(message) {
      count += 1
      if (count > maxRequests) call.end(new GrpcError('RESOURCE_EXHAUSTED', 'The call has too many requests.'))
      else call.send(answerOf(message))
    },
    end: () => call.end(),
    closed() {},
  }
}

interface Request {
  readonly field: number
  readonly text: string
}

function decode(message: Buffer): Request {
  const reader = new WireReader(message)
  let request: Request = { field: 0, text: '' }
  while (reader.next()) {
    const { field } = reader
    const isText = field === requests.fileByName || field === requests.fileBySymbol || field === requests.services
    if (isText || field === requests.extensionNumbers) request = { field, text: reader.string() }
    else {
      if (field === requests.extension) request = { field, text: '' }
      reader.skip()
    }
  }
  return request
}

/** Described at the first request: few servers are ever asked. */
let described: readonly DescribedFile[] | undefined

function answerOf(message: Buffer): Buffer {
  described ??= describeFiles(protoFiles)
  const { field, text } = decode(message)
  const writer = new WireWriter()
  writer.bytes(2, message)
  if (field === requests.services) {
    const list = writer.begin(6)
    for (const name of described.flatMap(({ services }) => services)) {
      const service = writer.begin(1)
      writer.string(1, name)
      writer.end(service)
    }
    writer.end(list)
    return writer.finish()
  }
  const file =
    field === requests.fileByName
      ? described.find(({ name }) => name === text)
      : field === requests.fileBySymbol
        ? described.find(({ symbols }) => symbols.includes(text))
        : undefined
  const start = writer.begin(file === undefined ? 7 : 4)
  if (file === undefined) {
    writer.uint(1, field === 0 ? statusCodes.INVALID_ARGUMENT : statusCodes.NOT_FOUND)
    writer.string(2, field === 0 ? 'The request asks for nothing.' : 'The server does not know this name.')
  } else for (const one of withImports(file, described)) writer.bytes(1, one.bytes)
  writer.end(start)
  return writer.finish()
}

/** The file and everything that it imports, so that a client needs one request. */
function withImports(file: DescribedFile, files: readonly DescribedFile[]): readonly DescribedFile[] {
  const found = new Set([file])
  for (const one of found)
    for (const name of one.imports) {
      const imported = files.find((other) => other.name === name)
      if (imported !== undefined) found.add(imported)
    }
  return [...found]
}
