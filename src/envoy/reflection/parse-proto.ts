/** Parses the subset of the .proto language that `proto-files` uses. */
export interface ProtoMessage {
  readonly name: string
  readonly fields: readonly ProtoField[]
  readonly messages: readonly ProtoMessage[]
  readonly enums: readonly ProtoEnum[]
  readonly oneofs: readonly string[]
  /** True for the entries of a map. */
  readonly isMapEntry: boolean
}

export interface ProtoField {
  readonly name: string
  readonly number: number
  readonly type: string
  readonly isRepeated: boolean
  /** The index of its oneof. */
  readonly oneof: number | undefined
}

export interface ProtoEnum {
  readonly name: string
  readonly values: readonly (readonly [name: string, number: number])[]
}

export interface ProtoMethod {
  readonly name: string
  readonly input: string
  readonly output: string
  readonly streamsInput: boolean
  readonly streamsOutput: boolean
}

interface ProtoService {
  readonly name: string
  readonly methods: readonly ProtoMethod[]
}

export interface ProtoDeclarations {
  readonly messages: readonly ProtoMessage[]
  readonly enums: readonly ProtoEnum[]
  readonly services: readonly ProtoService[]
}

export function parseProto(text: string): ProtoDeclarations {
  const tokens = new Tokens(text)
  const messages: ProtoMessage[] = []
  const enums: ProtoEnum[] = []
  const services: ProtoService[] = []
  while (!tokens.isAtEnd) {
    const kind = tokens.next()
    if (kind === 'message') messages.push(parseMessage(tokens))
    else if (kind === 'enum') enums.push(parseEnum(tokens))
    else services.push(parseService(tokens))
  }
  return { messages, enums, services }
}

class Tokens {
  readonly #tokens: readonly string[]
  #at = 0

  constructor(text: string) {
    this.#tokens = text.match(/[\w.]+|[{}()<>=,;]/g) ?? []
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#tokens.length
  }

  next(): string {
    return this.#tokens[this.#at++] as string
  }

  /** Skips the next token if it is `token`. Returns whether it was. */
  skip(token: string): boolean {
    const isNext = this.#tokens[this.#at] === token
    if (isNext) this.#at += 1
    return isNext
  }
}

function parseMessage(tokens: Tokens): ProtoMessage {
  const name = tokens.next()
  const fields: ProtoField[] = []
  const messages: ProtoMessage[] = []
  const enums: ProtoEnum[] = []
  const oneofs: string[] = []
  tokens.skip('{')
  while (!tokens.skip('}')) {
    if (tokens.skip('message')) messages.push(parseMessage(tokens))
    else if (tokens.skip('enum')) enums.push(parseEnum(tokens))
    else if (tokens.skip('oneof')) {
      oneofs.push(tokens.next())
      tokens.skip('{')
      while (!tokens.skip('}')) fields.push({ ...parseField(tokens), oneof: oneofs.length - 1 })
    } else if (tokens.skip('map')) {
      const { entry, field } = parseMap(tokens)
      messages.push(entry)
      fields.push(field)
    } else fields.push(parseField(tokens))
  }
  return { name, fields, messages, enums, oneofs, isMapEntry: false }
}

function parseField(tokens: Tokens): ProtoField {
  const isRepeated = tokens.skip('repeated')
  const [type, name, number] = [tokens.next(), tokens.next(), parseNumber(tokens)]
  return { name, number, type, isRepeated, oneof: undefined }
}

/** A map is a list of messages with a key and a value. */
function parseMap(tokens: Tokens): { readonly entry: ProtoMessage; readonly field: ProtoField } {
  tokens.skip('<')
  const keyType = tokens.next()
  tokens.skip(',')
  const valueType = tokens.next()
  tokens.skip('>')
  const [name, number] = [tokens.next(), parseNumber(tokens)]
  const entryName = `${name.replaceAll(/(?:^|_)(\w)/g, (_, first: string) => first.toUpperCase())}Entry`
  const member = (memberName: string, memberNumber: number, type: string): ProtoField => ({
    name: memberName,
    number: memberNumber,
    type,
    isRepeated: false,
    oneof: undefined,
  })
  const fields = [member('key', 1, keyType), member('value', 2, valueType)]
  return {
    entry: { name: entryName, fields, messages: [], enums: [], oneofs: [], isMapEntry: true },
    field: { name, number, type: entryName, isRepeated: true, oneof: undefined },
  }
}

function parseNumber(tokens: Tokens): number {
  tokens.skip('=')
  const number = Number(tokens.next())
  tokens.skip(';')
  return number
}

function parseEnum(tokens: Tokens): ProtoEnum {
  const name = tokens.next()
  const values: [string, number][] = []
  tokens.skip('{')
  while (!tokens.skip('}')) values.push([tokens.next(), parseNumber(tokens)])
  return { name, values }
}

function parseService(tokens: Tokens): ProtoService {
  const name = tokens.next()
  const methods: ProtoMethod[] = []
  tokens.skip('{')
  while (!tokens.skip('}')) {
    tokens.skip('rpc')
    const method = tokens.next()
    tokens.skip('(')
    const streamsInput = tokens.skip('stream')
    const input = tokens.next()
    for (const token of [')', 'returns', '(']) tokens.skip(token)
    const streamsOutput = tokens.skip('stream')
    const output = tokens.next()
    for (const token of [')', ';']) tokens.skip(token)
    methods.push({ name: method, input, output, streamsInput, streamsOutput })
  }
  return { name, methods }
}
