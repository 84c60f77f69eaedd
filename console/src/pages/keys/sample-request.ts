/** A request to which a rule applies, for a refund. */
import type { RuleDocument } from '../../state/rules.js'

export interface SampleRequest {
  readonly method: string
  readonly path: string
  readonly clientIp?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly attributes?: Readonly<Record<string, unknown>>
}

/** The first value of each condition is that of the request. */
export function sampleRequest({ path = '/**', method = 'GET', when = {} }: RuleDocument): SampleRequest {
  const values = Object.entries(when).map(([field, value]) => [field, [value].flat()[0]] as const)
  const required = (name: string): unknown => values.find(([field]) => field === name)?.[1]
  const membersOf = (prefix: string): Readonly<Record<string, never>> | undefined => {
    const members = values.filter(([field]) => field.startsWith(prefix))
    if (members.length === 0) return undefined
    return Object.fromEntries(members.map(([field, value]) => [field.slice(prefix.length), value as never]))
  }
  const clientIp = required('clientIp')
  const headers = membersOf('header.')
  const attributes = membersOf('attributes.')
  return {
    method: String([required('method') ?? method].flat().find((it) => it !== '*') ?? 'GET'),
    path: samplePath(path, (name) => required(`path.${name}`)),
    // The first address of a range is in it.
    ...(typeof clientIp === 'string' && { clientIp: clientIp.replace(/\/\d+$/, '') }),
    ...(headers && { headers }),
    ...(attributes && { attributes }),
  }
}

/** A path that the pattern matches: `/api/**` → `/api/x`. */
const samplePath = (pattern: string, required: (name: string) => unknown): string =>
  pattern
    .replaceAll(/\{([^}]*)\}|:(\w+)/g, (_, braced?: string, named = '') => String(required(braced ?? named) ?? 'x'))
    .replaceAll(/\*+/g, 'x')
    .replaceAll('?', 'x')
