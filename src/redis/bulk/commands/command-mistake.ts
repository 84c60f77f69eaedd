const allowed = "a list of texts, numbers and bytes, such as ['SET', 'key', 'value']"

/** What keeps something from being a command, if anything does. */
export function commandMistake(command: unknown): string | undefined {
  if (command instanceof Uint8Array) return `found bytes; allowed: ${allowed}, or bytes with a format`
  if (!Array.isArray(command)) return `found ${kindOf(command)}; allowed: ${allowed}`
  if (command.length === 0) return 'a command has at least a name'
  for (let i = 0; i < command.length; i++)
    if (!isArgument(command[i])) return `argument ${i} is ${kindOf(command[i])}; allowed: text, a number or bytes`
  return undefined
}

function isArgument(part: unknown): boolean {
  if (typeof part === 'number') return Number.isFinite(part)
  return typeof part === 'string' || typeof part === 'bigint' || part instanceof Uint8Array
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined || typeof value === 'number') return String(value)
  return typeof value === 'string' ? 'text' : `of type ${typeof value}`
}
