import type { CommandWriter } from '../commands/writer.js'

/** Commands after which the server no longer sends exactly one reply per command. */
const names = ['SUBSCRIBE', 'PSUBSCRIBE', 'SSUBSCRIBE', 'MONITOR', 'QUIT', 'HELLO', 'SYNC', 'PSYNC', 'RESET']
const signatures = new Set(names.map((name) => name.charCodeAt(0) * 16 + name.length))
const clientSignature = 'C'.charCodeAt(0) * 16 + 'CLIENT'.length

/** Returns why the last command cannot be loaded, or `undefined` if it can. */
export function unsupportedCommand(out: CommandWriter): string | undefined {
  // The first byte and the length of the name rule out almost all commands cheaply.
  const signature = (out.nameByte & 0xdf) * 16 + out.nameLength
  if (!signatures.has(signature) && signature !== clientSignature) return undefined
  const word = (index: number): string => out.argument(index)?.toString('latin1').toUpperCase() ?? ''
  const name = word(0)
  const isReply = name === 'CLIENT' && word(1) === 'REPLY'
  return names.includes(name) || isReply
    ? `${name} cannot be loaded because it changes how the server replies`
    : undefined
}
