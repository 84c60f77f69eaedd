import type { CommandWriter } from '../commands/command-writer.js'

/** Commands after which a connection no longer answers each command with one reply. */
const names = ['SUBSCRIBE', 'PSUBSCRIBE', 'SSUBSCRIBE', 'MONITOR', 'QUIT', 'HELLO', 'SYNC', 'PSYNC', 'RESET']
const beginnings = new Set(names.map((name) => name.charCodeAt(0) * 16 + name.length))
const clientBeginning = 'C'.charCodeAt(0) * 16 + 'CLIENT'.length

/** Why the last command cannot be loaded, if so. */
export function unsuitable(out: CommandWriter): string | undefined {
  // Hardly any command is looked at more closely than this.
  const beginning = (out.nameByte & 0xdf) * 16 + out.nameLength
  if (!beginnings.has(beginning) && beginning !== clientBeginning) return undefined
  const word = (index: number): string => out.argument(index)?.toString('latin1').toUpperCase() ?? ''
  const name = word(0)
  const isReply = name === 'CLIENT' && word(1) === 'REPLY'
  return names.includes(name) || isReply ? `${name} changes how the server answers, and cannot be loaded` : undefined
}
