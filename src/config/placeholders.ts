/**
 * Replaces `${NAME}` and `${NAME:default}` in string values of a configuration file. An empty variable counts as unset,
 * because many tools pass unset variables as empty strings.
 */
export type Environment = Readonly<Record<string, string | undefined>>

export interface Filled {
  readonly text: string
  /** True if the value was a single placeholder, so the result may be a number, a boolean or empty. */
  readonly isWhole: boolean
  /** Validation issues of the placeholders. */
  readonly mistakes: readonly string[]
}

const placeholder = /\$\$\{|\$\{([^{}]*)\}|\$\{/g
const form = /^([A-Za-z_][A-Za-z0-9_]*)(?::(.*))?$/s

/** Fills in all placeholders. `$${` is an escaped `${`. */
export function fillIn(text: string, environment: Environment): Filled {
  const mistakes: string[] = []
  const filled = text.replace(placeholder, (match: string, body: string | undefined) => {
    if (match.startsWith('$$')) return match.slice(1)
    const [, name, fallback] = form.exec(body ?? '') ?? []
    if (name === undefined) {
      mistakes.push(
        `contains a placeholder without a valid name; use \${NAME}, \${NAME:default}, or $\${ for a literal \${`,
      )
      return ''
    }
    const value = variable(environment, name) ?? fallback
    if (value === undefined) {
      mistakes.push(`environment variable ${name} is not set; set it, or add a default: \${${name}:default}`)
    }
    return value ?? ''
  })
  return { text: filled, isWhole: /^\$\{[^{}]*\}$/.test(text), mistakes }
}

/** Fills in placeholders in a string, a list or an object, recursively. Placeholders that come out empty are left out. */
export function fillInValue(value: unknown, environment: Environment): Omit<Filled, 'text'> & { value: unknown } {
  if (typeof value === 'string') {
    const { text, ...filled } = fillIn(value, environment)
    return { value: text, ...filled }
  }
  if (typeof value !== 'object' || value === null) return { value, isWhole: false, mistakes: [] }
  const members = Object.entries(value).map(([name, member]) => [name, fillInValue(member, environment)] as const)
  const mistakes = members.flatMap(([, filled]) => filled.mistakes)
  const present = members.filter(([, filled]) => !filled.isWhole || filled.value !== '')
  if (Array.isArray(value)) return { value: present.map(([, filled]) => filled.value), isWhole: false, mistakes }
  const scalars = present.map(([name, filled]) => [
    name,
    filled.isWhole ? scalarOf(String(filled.value)) : filled.value,
  ])
  return { value: Object.fromEntries(scalars), isWhole: false, mistakes }
}

/** The value of an environment variable; undefined if it is empty or unset. Ignores inherited properties. */
export const variable = (environment: Environment, name: string): string | undefined =>
  (Object.hasOwn(environment, name) && environment[name]) || undefined

/** Converts text to a number or a boolean where it is one. */
export function scalarOf(text: string): string | number | boolean {
  if (text === 'true' || text === 'false') return text === 'true'
  return /^-?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : text
}

/** YAML punctuation inside placeholders, and the first of the noncharacters that replace it during parsing. */
const punctuation = '{}[],:#'
const maskBase = 0xfdd0

/**
 * Masks placeholders so that YAML parses them as plain text, even in `{ port: ${PORT:8080} }`. Each character is replaced by
 * one character, so positions in error messages stay correct.
 */
export const maskPlaceholders = (text: string): string =>
  text.replace(/\$\{[^{}"'\n]*\}/g, (match) =>
    match.replace(/[{}[\],:#]/g, (char) => String.fromCharCode(maskBase + punctuation.indexOf(char))),
  )

export const unmaskPlaceholders = (text: string): string =>
  text.replace(/[\ufdd0-\ufdd6]/g, (char) => punctuation[char.charCodeAt(0) - maskBase] as string)
