const allowed = "a list of strings, numbers and bytes such as ['SET', 'key', 'value']"

/** Validates a command. Returns the problem, or `undefined` if the command is valid. */
export function commandIssue(command: unknown): string | undefined {
  if (command instanceof Uint8Array) return `a command must be ${allowed}; received bytes. Set format to load bytes`
  if (!Array.isArray(command)) return `a command must be ${allowed}; received ${typeName(command)}`
  if (command.length === 0) return 'a command must have a name'
  for (let i = 0; i < command.length; i++)
    if (!isArgument(command[i]))
      return `argument ${i} must be a string, a number or bytes; received ${typeName(command[i])}`
  return undefined
}

function isArgument(part: unknown): boolean {
  if (typeof part === 'number') return Number.isFinite(part)
  return typeof part === 'string' || typeof part === 'bigint' || part instanceof Uint8Array
}

function typeName(value: unknown): string {
  if (value === null || value === undefined || typeof value === 'number') return String(value)
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
