import { maxCapacity } from '../../core/rule.js'
import type { GuardOptions } from '../../http/guard-options.js'
import { headerChoice, headerName, trustedProxies } from '../../http/option-kinds.js'
import { singleRuleKinds } from '../../rules/schema/rule-schema.js'
import { configInvalid } from '../../validation/config-invalid.js'
import { isObject } from '../../validation/fields.js'
import { type Kind, type Kinds, wrongValue } from '../../validation/kind.js'
import { anyValue, callback, codeValue, identifier, warningLogger, wholeNumber } from '../../validation/kinds.js'
import { checkOptions } from '../../validation/options.js'

const isFunction = (value: unknown): boolean => typeof value === 'function'

const strings = codeValue<readonly string[]>('a list of strings', (value) => {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
})
export const permitCount = wholeNumber(1, maxCapacity)

/** Options of the HTTP edge, independent of how requests are decided. */
const edgeKinds: Readonly<Record<Exclude<keyof GuardOptions, 'ruleSetId'>, Kind<unknown>>> = {
  permits: codeValue(
    `${permitCount.allowed}, or a function`,
    (value) => isFunction(value) || permitCount.parse(value) !== undefined,
  ),
  trustedProxies,
  clientIpHeader: headerName,
  includePatterns: strings,
  excludePatterns: strings,
  userIdHeader: headerName,
  apiKeyHeader: headerName,
  headers: headerChoice,
  key: callback,
  costs: callback,
  skip: callback,
  customize: callback,
  countWhen: callback,
  onRejected: callback,
  statusCode: wholeNumber(400, 599),
  message: codeValue(
    'a string, an object or a function',
    (value) => typeof value === 'string' || isFunction(value) || isObject(value),
  ),
  logger: warningLogger,
  clock: codeValue('an object with now()', (value) => isFunction((value as { now?: unknown } | null)?.now)),
}

const handler = codeValue('a gate created by createFluxGate, or another Handler', (value) =>
  isFunction((value as { check?: unknown } | null)?.check),
)

/** Options for limits decided by a gate or another handler. */
const handlerKinds: Kinds = {
  gate: handler,
  handler,
  ruleSetId: identifier,
}

/** Options for limits with an inline rule. The rule parser validates the fields of the rule, and `store` is validated when it is opened. */
const ownKinds: Kinds = {
  ...Object.fromEntries(Object.keys(singleRuleKinds).map((name) => [name, anyValue])),
  limits: anyValue,
  store: anyValue,
  ipv6Prefix: wholeNumber(1, 128),
  maxConcurrentWaits: wholeNumber(0, 1_000_000),
}

export const isEdgeOption = (name: string): boolean => Object.hasOwn(edgeKinds, name)

/** True for the name of an option, which no limit can have. */
export const isOption = (name: string): boolean =>
  [edgeKinds, handlerKinds, ownKinds].some((kinds) => Object.hasOwn(kinds, name))

/** Throws for unknown and invalid options instead of ignoring them. */
export function checkEdgeOptions(options: unknown): void {
  const given = isObject(options) ? options : {}
  const hasHandler = given.gate !== undefined || given.handler !== undefined
  if (hasHandler) checkHandled(given)
  const kinds = { ...(hasHandler ? handlerKinds : ownKinds), ...edgeKinds }
  checkOptions(source, options, kinds, "options such as { capacity: 100, window: '1m' } or { gate }")
  if (given.gate !== undefined && given.handler !== undefined) throw conflict('handler', 'gate, which replaces it')
  if (given.key !== undefined && given.limitScope !== undefined)
    throw conflict('limitScope', 'key, which is counted in its place')
  if (given.limits !== undefined) checkLimits(given)
  if (given.onRejected !== undefined && given.message !== undefined)
    throw conflict('message', 'onRejected, which sends the response')
}

/** Options of inline rules are known, so the error must not call them unknown. */
function checkHandled(options: Readonly<Record<string, unknown>>): void {
  // The option of express-rate-limit that sends rejections.
  if (isFunction(options.handler) && handler.parse(options.handler) === undefined)
    throw configInvalid(source, [
      {
        path: 'handler',
        message: `${wrongValue(options.handler, handler.allowed)}. Use onRejected to send rejections`,
      },
    ])
  const place = options.gate === undefined ? 'handler' : 'gate'
  const issues = Object.keys(options)
    .filter((name) => options[name] !== undefined && !isEdgeOption(name) && Object.hasOwn(ownKinds, name))
    .map((path) => ({ path, message: `must not be combined with ${place}, which has its own rules and store` }))
  if (issues.length > 0) throw configInvalid(source, issues)
}

/** The fields of the rules are validated when they are parsed. */
function checkLimits(options: Readonly<Record<string, unknown>>): void {
  const { limits } = options
  if (!isObject(limits))
    throw configInvalid(source, [{ path: 'limits', message: wrongValue(limits, 'an object of rules by name') }])
  const issues = []
  for (const name of Object.keys(singleRuleKinds))
    if (options[name] !== undefined)
      issues.push({ path: name, message: 'must not be combined with limits; move it into a rule' })
  for (const [name, rule] of Object.entries(limits)) {
    const path = `limits.${name}`
    if (identifier.parse(name) === undefined || isOption(name))
      issues.push({ path, message: `must have another name: ${identifier.allowed}, and not the name of an option` })
    if (!isObject(rule))
      issues.push({ path, message: wrongValue(rule, "a rule such as { capacity: 10, window: '1m' }") })
    else if (options.key !== undefined && rule.limitScope !== undefined)
      issues.push({
        path: `${path}.limitScope`,
        message: 'must not be combined with key, which is counted in its place',
      })
  }
  if (issues.length > 0) throw configInvalid(source, issues)
}

const source = 'Options of rateLimit'

const conflict = (path: string, other: string): Error =>
  configInvalid(source, [{ path, message: `must not be combined with ${other}` }])
