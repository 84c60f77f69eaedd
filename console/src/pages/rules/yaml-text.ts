import { parseDocument, stringify } from 'yaml'
import { plainSet, type RuleSetDocument } from '../../state/rules.js'

export const toYaml = (document: unknown): string => stringify(document, { lineWidth: 110 }).trimEnd()

export interface ParsedYaml {
  readonly value: unknown
  /** With line and column. */
  readonly problem: string
}

/** Aliases are limited, so that a document of a few lines cannot fill the memory. */
export function fromYaml(text: string): ParsedYaml {
  const document = parseDocument(text, { prettyErrors: true })
  const [error] = document.errors
  if (error !== undefined) return { value: undefined, problem: error.message.split('\n')[0] ?? error.message }
  try {
    return { value: document.toJS({ maxAliasCount: 100 }) as unknown, problem: '' }
  } catch (failure) {
    return { value: undefined, problem: (failure as Error).message }
  }
}

/** Like `fromYaml`, for a document that must be an object. `notObject` is the problem of any other document. */
export function objectFromYaml(text: string, notObject: string): { value: object | undefined; problem: string } {
  const { value, problem } = fromYaml(text)
  if (problem !== '') return { value: undefined, problem }
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return isObject ? { value, problem } : { value: undefined, problem: notObject }
}

/** Saves a rule set as a file that `fluxgate rules apply` and the import accept. */
export function downloadSet(set: RuleSetDocument): void {
  const document = { ruleSets: [plainSet(set)] }
  const url = URL.createObjectURL(new Blob([`${toYaml(document)}\n`], { type: 'application/yaml' }))
  const link = linkOf(url, `${set.id}.yaml`)
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 1_000)
}

function linkOf(url: string, name: string): HTMLAnchorElement {
  const link = document.createElement('a')
  link.href = url
  link.download = name
  return link
}
