/**
 * `${NAME}` and `${NAME:default}` inside the text values of a configuration file. A variable that is empty counts as
 * one that is not set, because that is how many tools pass on what they do not have.
 */
export type Environment = Readonly<Record<string, string | undefined>>

export interface Filled {
  readonly text: string
  /** The value was one placeholder and nothing else, so it may mean a number, a boolean, or nothing. */
  readonly isWhole: boolean
  /** What is wrong with its placeholders, a sentence each. */
  readonly mistakes: readonly string[]
}

const placeholder = /\$\$\{|\$\{([^{}]*)\}|\$\{/g
const form = /^([A-Za-z_][A-Za-z0-9_]*)(?::(.*))?$/s

/** `$${` stands for `${` itself. */
export function fillIn(text: string, environment: Environment): Filled {
  const mistakes: string[] = []
  const filled = text.replace(placeholder, (match: string, body: string | undefined) => {
    if (match.startsWith('$$')) return match.slice(1)
    const [, name, fallback] = form.exec(body ?? '') ?? []
    if (name === undefined) {
      mistakes.push(
        `found a placeholder without a name; allowed: \${NAME}, \${NAME:default}, or $\${ for the characters`,
      )
      return ''
    }
    const value = variable(environment, name) ?? fallback
    if (value === undefined) {
      mistakes.push(`the environment variable ${name} is not set; set it, or give a default: \${${name}:default}`)
    }
    return value ?? ''
  })
  return { text: filled, isWhole: /^\$\{[^{}]*\}$/.test(text), mistakes }
}

/** Also in the texts of a list and of the objects in it. Members of a list that come out empty are left out. */
export function fillInValue(value: unknown, environment: Environment): Omit<Filled, 'text'> & { value: unknown } {
  if (typeof value === 'string') {
    const { text, ...filled } = fillIn(value, environment)
    return { value: text, ...filled }
  }
  if (typeof value !== 'object' || value === null) return { value, isWhole: false, mistakes: [] }
  const members = Object.entries(value).map(([name, member]) => [name, fillInValue(member, environment)] as const)
  const mistakes = members.flatMap(([, filled]) => filled.mistakes)
  const given = members.filter(([, filled]) => !filled.isWhole || filled.value !== '')
  if (Array.isArray(value)) return { value: given.map(([, filled]) => filled.value), isWhole: false, mistakes }
  const scalars = given.map(([name, filled]) => [name, filled.isWhole ? scalarOf(String(filled.value)) : filled.value])
  return { value: Object.fromEntries(scalars), isWhole: false, mistakes }
}

/** A variable's value; `undefined` if it is empty, or only something that every object inherits. */
export const variable = (environment: Environment, name: string): string | undefined =>
  (Object.hasOwn(environment, name) && environment[name]) || undefined

/** What text from outside means where a number or a boolean is asked for. */
export function scalarOf(text: string): string | number | boolean {
  if (text === 'true' || text === 'false') return text === 'true'
  return /^-?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : text
}

/** Punctuation that YAML would take for its own, and a code point that no text has in its place. */
const punctuation = '{}[],:#'
const stand = 0xfdd0

/**
 * Lets YAML read placeholders as plain text, also inside `{ port: ${PORT:8080} }`. Nothing moves: each character stands
 * where it stood, so that mistakes are reported at their place.
 */
export const maskPlaceholders = (text: string): string =>
  text.replace(/\$\{[^{}"'\n]*\}/g, (match) =>
    match.replace(/[{}[\],:#]/g, (char) => String.fromCharCode(stand + punctuation.indexOf(char))),
  )

export const unmaskPlaceholders = (text: string): string =>
  text.replace(/[\ufdd0-\ufdd6]/g, (char) => punctuation[char.charCodeAt(0) - stand] as string)
