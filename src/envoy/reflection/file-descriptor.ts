/** Encodes .proto files as google.protobuf.FileDescriptorProto. */
import { WireWriter } from '../protobuf/wire-writer.js'
import {
  type ProtoDeclarations,
  type ProtoEnum,
  type ProtoField,
  type ProtoMessage,
  type ProtoMethod,
  parseProto,
} from './parse-proto.js'
import type { ProtoFile } from './proto-files.js'

/** A described file, and the full names of everything that it declares. */
export interface DescribedFile {
  readonly name: string
  readonly imports: readonly string[]
  readonly services: readonly string[]
  readonly symbols: readonly string[]
  readonly bytes: Buffer
}

/** The numbers of google.protobuf.FieldDescriptorProto.Type. */
const scalarTypes: ReadonlyMap<string, number> = new Map([
  ['double', 1],
  ['float', 2],
  ['int64', 3],
  ['uint64', 4],
  ['int32', 5],
  ['bool', 8],
  ['string', 9],
  ['bytes', 12],
  ['uint32', 13],
])
const messageType = 11
const enumType = 14
const labels = { optional: 1, repeated: 3 } as const

/** Full names of declared types, and whether they are enums. */
type KnownTypes = Map<string, boolean>

/** Describes files. Each must come after those that it imports. */
export function describeFiles(files: readonly ProtoFile[]): readonly DescribedFile[] {
  const types: KnownTypes = new Map()
  return files.map((file) => {
    const declared = parseProto(file.text)
    const symbols = declareTypes(file.package, declared, types)
    const services = declared.services.map(({ name }) => `${file.package}.${name}`)
    const methods = declared.services.flatMap(({ name, methods }) =>
      methods.map((method) => `${file.package}.${name}.${method.name}`),
    )
    return {
      name: file.name,
      imports: file.imports,
      services,
      symbols: [...symbols, ...services, ...methods],
      bytes: encodeFile(file, declared, types),
    }
  })
}

function declareTypes(
  scope: string,
  { messages, enums }: Pick<ProtoDeclarations, 'messages' | 'enums'>,
  types: KnownTypes,
): string[] {
  const names: string[] = []
  for (const { name } of enums) {
    types.set(`${scope}.${name}`, true)
    names.push(`${scope}.${name}`)
  }
  for (const message of messages) {
    const name = `${scope}.${message.name}`
    types.set(name, false)
    names.push(name, ...declareTypes(name, message, types))
  }
  return names
}

/** Encodes one file. The numbers are those of the fields in google/protobuf/descriptor.proto. */
function encodeFile(file: ProtoFile, { messages, enums, services }: ProtoDeclarations, types: KnownTypes): Buffer {
  const writer = new WireWriter()
  writer.string(1, file.name)
  writer.string(2, file.package)
  for (const name of file.imports) writer.string(3, name)
  for (const message of messages) nested(writer, 4, () => writeMessage(writer, message, file.package, types))
  for (const one of enums) nested(writer, 5, () => writeEnum(writer, one))
  for (const { name, methods } of services)
    nested(writer, 6, () => {
      writer.string(1, name)
      for (const method of methods) nested(writer, 2, () => writeMethod(writer, method, file.package, types))
    })
  writer.string(12, 'proto3')
  return writer.finish()
}

function nested(writer: WireWriter, field: number, write: () => void): void {
  const start = writer.begin(field)
  write()
  writer.end(start)
}

function writeMessage(writer: WireWriter, message: ProtoMessage, outer: string, types: KnownTypes): void {
  const scope = `${outer}.${message.name}`
  writer.string(1, message.name)
  for (const field of message.fields) nested(writer, 2, () => writeField(writer, field, scope, types))
  for (const inner of message.messages) nested(writer, 3, () => writeMessage(writer, inner, scope, types))
  for (const one of message.enums) nested(writer, 4, () => writeEnum(writer, one))
  if (message.isMapEntry) nested(writer, 7, () => writer.bool(7, true))
  for (const name of message.oneofs) nested(writer, 8, () => writer.string(1, name))
}

function writeField(writer: WireWriter, field: ProtoField, scope: string, types: KnownTypes): void {
  const scalar = scalarTypes.get(field.type)
  writer.string(1, field.name)
  writer.uint(3, field.number)
  writer.uint(4, field.isRepeated ? labels.repeated : labels.optional)
  if (scalar !== undefined) writer.uint(5, scalar)
  else {
    const name = resolve(field.type, scope, types)
    writer.uint(5, types.get(name) ? enumType : messageType)
    writer.string(6, `.${name}`)
  }
  if (field.oneof !== undefined) writer.index(9, field.oneof)
  writer.string(
    10,
    field.name.replaceAll(/_(\w)/g, (_, first: string) => first.toUpperCase()),
  )
}

function writeEnum(writer: WireWriter, { name, values }: ProtoEnum): void {
  writer.string(1, name)
  for (const [value, number] of values)
    nested(writer, 2, () => {
      writer.string(1, value)
      writer.index(2, number)
    })
}

function writeMethod(
  writer: WireWriter,
  { name, input, output, streamsInput, streamsOutput }: ProtoMethod,
  scope: string,
  types: KnownTypes,
): void {
  writer.string(1, name)
  writer.string(2, `.${resolve(input, scope, types)}`)
  writer.string(3, `.${resolve(output, scope, types)}`)
  writer.bool(5, streamsInput)
  writer.bool(6, streamsOutput)
}

/** The full name of a type: that of the innermost scope that declares it. */
function resolve(type: string, scope: string, types: KnownTypes): string {
  for (let at = scope; at !== ''; at = at.slice(0, Math.max(0, at.lastIndexOf('.'))))
    if (types.has(`${at}.${type}`)) return `${at}.${type}`
  return type
}
