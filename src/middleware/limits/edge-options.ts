import { maxCapacity } from '../../core/rule.js'
import type { GuardOptions } from '../../http/guard-options.js'
import type { HeaderChoice } from '../../http/headers/rate-limit-headers.js'
import { headerName, trustedProxies } from '../../http/option-kinds.js'
import { singleRuleFields } from '../../rules/schema/rule-schema.js'
import { configInvalid } from '../../validation/config-invalid.js'
import { type Kind, openFields } from '../../validation/fields.js'
import { noIssues } from '../../validation/issues.js'
import { identifier, wholeNumber } from '../../validation/kinds.js'

const isFunction = (value: unknown): boolean => typeof value === 'function'

function kind<T>(allowed: string, isAllowed: (value: unknown) => boolean): Kind<T> {
  return { allowed, parse: (value) => (isAllowed(value) ? (value as T) : undefined) }
}

const strings = kind<readonly string[]>('a list of strings', (value) => {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
})
const hook = kind<never>('a function', isFunction)
export const permitCount = wholeNumber(1, maxCapacity)

/** Options of the HTTP edge, independent of how requests are decided. */
const edgeKinds: Readonly<Record<Exclude<keyof GuardOptions, 'ruleSetId'>, Kind<unknown>>> = {
  permits: kind(
    `${permitCount.allowed}, or a function`,
    (value) => isFunction(value) || permitCount.parse(value) !== undefined,
  ),
  trustedProxies,
  clientIpHeader: headerName,
  includePatterns: strings,
  excludePatterns: strings,
  userIdHeader: headerName,
  apiKeyHeader: headerName,
  headers: kind<HeaderChoice>("false, 'standard', 'legacy' or 'both'", (value) =>
    [false, 'standard', 'legacy', 'both'].includes(value as string | false),
  ),
  skip: hook,
  customize: hook,
  clock: kind('an object with now()', (value) => isFunction((value as { now?: unknown } | null)?.now)),
}

/** Options for limits decided by a gate or another handler. */
const handlerKinds: Readonly<Record<string, Kind<unknown>>> = {
  handler: kind('a gate created by createFluxGate, or another Handler', (value) =>
    isFunction((value as { check?: unknown } | null)?.check),
  ),
  ruleSetId: identifier,
}

/** Options for limits with an inline rule, in addition to the fields of the rule. `store` is validated when it is opened. */
const ownKinds: Readonly<Record<string, Kind<unknown>>> = {
  ipv6Prefix: wholeNumber(1, 128),
  maxConcurrentWaits: wholeNumber(0, 1_000_000),
}

export const isEdgeOption = (name: string): boolean => Object.hasOwn(edgeKinds, name)

/** Throws for unknown and invalid options instead of ignoring them. The values of rule fields are validated by the rule parser. */
export function checkEdgeOptions(options: unknown): void {
  const issues = noIssues()
  const hasHandler = (options as { handler?: unknown } | undefined)?.handler !== undefined
  const kinds = { ...edgeKinds, ...(hasHandler ? handlerKinds : ownKinds) }
  const names = [...Object.keys(kinds), ...(hasHandler ? [] : ['store', ...singleRuleFields])]
  const forms = "options such as { capacity: 100, window: '1m' } or { handler: gate }"
  const fields = openFields(options, '', [...new Set(names)], forms, issues)
  for (const [name, kind] of Object.entries(kinds)) fields?.read(name, kind)
  if (issues.count > 0) throw configInvalid('Options of rateLimit', issues.kept)
}
