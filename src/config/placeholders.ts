/**
 * Replaces `${NAME}` and `${NAME:default}` in string values of a configuration file. An empty variable counts as unset,
 * because many tools pass unset variables as empty strings.
 */
export type Environment = Readonly<Record<string, string | undefined>>

export interface Substitution {
  readonly text: string
  /** True if the value was a single placeholder, so the result may be a number, a boolean or empty. */
  readonly isWhole: boolean
  /** Messages about invalid placeholders. */
  readonly issues: readonly string[]
}

const placeholder = /\$\$\{|\$\{([^{}]*)\}|\$\{/g
const namePattern = /^([A-Za-z_][A-Za-z0-9_]*)(?::(.*))?$/s

/** Replaces all placeholders in a string. `$${` is an escaped `${`. */
export function substitute(text: string, environment: Environment): Substitution {
  const issues: string[] = []
  const result = text.replace(placeholder, (match: string, body: string | undefined) => {
    if (match.startsWith('$$')) return match.slice(1)
    const [, name, fallback] = namePattern.exec(body ?? '') ?? []
    if (name === undefined) {
      issues.push(
        `contains a placeholder without a valid name; use \${NAME}, \${NAME:default}, or $\${ for a literal \${`,
      )
      return ''
    }
    const value = variable(environment, name) ?? fallback
    if (value === undefined) {
      issues.push(`environment variable ${name} is not set; set it, or add a default: \${${name}:default}`)
    }
    return value ?? ''
  })
  return { text: result, isWhole: /^\$\{[^{}]*\}$/.test(text), issues }
}

/** Replaces placeholders in a string, a list or an object, recursively. Members whose placeholder is empty are omitted. */
export function substituteAll(
  value: unknown,
  environment: Environment,
): Omit<Substitution, 'text'> & { readonly value: unknown } {
  if (typeof value === 'string') {
    const { text, ...rest } = substitute(value, environment)
    return { value: text, ...rest }
  }
  if (typeof value !== 'object' || value === null) return { value, isWhole: false, issues: [] }
  const members = Object.entries(value).map(([name, member]) => [name, substituteAll(member, environment)] as const)
  const issues = members.flatMap(([, result]) => result.issues)
  const present = members.filter(([, result]) => !result.isWhole || result.value !== '')
  if (Array.isArray(value)) return { value: present.map(([, result]) => result.value), isWhole: false, issues }
  const scalars = present.map(([name, result]) => [
    name,
    result.isWhole ? scalarOf(String(result.value)) : result.value,
  ])
  return { value: Object.fromEntries(scalars), isWhole: false, issues }
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
