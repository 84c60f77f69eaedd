import { closeOnError } from '../../core/close-on-error.js'
import { FluxGateError } from '../../core/errors.js'
import type { Handler } from '../../core/handler.js'
import type { FluxGate } from '../../gate/flux-gate.js'
import { unknownRuleSet } from '../../handlers/unknown-rule-set.js'
import { Guard } from '../../http/guard.js'
import type { GuardOptions } from '../../http/guard-options.js'
import { type IdentitySources, type WatchedRules, watchIdentitySources } from '../../http/identity-sources.js'
import { configInvalid } from '../../validation/config-invalid.js'
import { quoted } from '../../validation/issues.js'
import { Warnings } from '../../validation/warnings.js'
import { checkEdgeOptions, isEdgeOption } from './edge-options.js'
import {
  type CompiledInlineRule,
  compileInlineRule,
  createInlineHandler,
  type InlineRule,
  type InlineStorage,
} from './inline-rules.js'

/** A limit with an inline rule: `{ capacity: 100, window: '1m' }`, or any fields of a rule. */
export type SingleLimit<Native = unknown> = InlineRule<Native> &
  InlineStorage & { readonly gate?: undefined; readonly handler?: undefined; readonly limits?: undefined }

/** Several inline rules, which are decided together: all of them are charged, or none is. */
export type NamedLimits<Native = unknown> = InlineStorage & {
  readonly gate?: undefined
  readonly handler?: undefined
  /** The rules by name. A name is the ID of its rule. */
  readonly limits: Readonly<Record<string, InlineRule<Native>>>
}

/** A limit decided by a gate or another handler. */
export type HandledLimit =
  | {
      /** A gate of `createFluxGate`, or another `Handler` such as `HttpHandler`. */
      readonly gate: Handler
      readonly handler?: undefined
    }
  | {
      readonly gate?: undefined
      /** @deprecated Use `gate`. */
      readonly handler: Handler
    }

/** Options of every middleware: the limit, and how requests are read and rejected. */
export type RateLimitOptions<Native = unknown, Reply = unknown> = GuardOptions<Native, Reply> &
  (SingleLimit<Native> | NamedLimits<Native> | HandledLimit)

/** The gate or handler that decides; undefined for an inline rule. */
export const handlerOf = ({
  gate,
  handler,
}: {
  readonly gate?: Handler | undefined
  readonly handler?: Handler | undefined
}) => gate ?? handler

export interface OwnedGuard<Native, Reply = unknown> {
  readonly guard: Guard<Native, Reply>
  readonly warnings: Warnings
  /** The inline rules by name; a single rule has no name. */
  readonly rules?: ReadonlyMap<string, CompiledInlineRule<Native>>
  /** Rejects delayed requests and closes the store if the guard opened it. */
  close(): Promise<void>
}

/** How the inline rules of a guard relate to those of other guards. */
export interface InlineScope<Native> {
  /** The rule set of a rule, by name. Rules with the same rule set, ID and bands share their buckets. */
  ruleSetOf?(name: string): string
  /** Rules of another guard that apply too, unless a rule of the options has the same name. */
  readonly shared?: ReadonlyMap<string, CompiledInlineRule<Native>> | undefined
}

/** The rule set of inline rules, and the ID of a single one. */
export const inlineName = 'limit'

/** Creates a guard from middleware options. */
export function createGuard<Native, Reply>(
  options: RateLimitOptions<Native, Reply>,
  scope: InlineScope<Native> = {},
): OwnedGuard<Native, Reply> {
  checkEdgeOptions(options)
  const given = handlerOf(options)
  if (given !== undefined) {
    requireRuleSet(given, options.ruleSetId)
    const guard = new Guard<Native, Reply>(given, options)
    const stopWarning = warnOfMissingSources(given, options)
    return {
      guard,
      warnings: warningsOf(given, options),
      async close() {
        stopWarning?.()
        guard.close()
      },
    }
  }
  const { edge, limit } = splitOptions(options)
  const warnings = new Warnings(options.logger)
  const rules = new Map([...(scope.shared ?? []), ...compileRules(limit, edge, scope)])
  checkRules(rules)
  const { handler, customize, close } = createInlineHandler([...rules.values()], limit, edge, warnings)
  const guard = closeOnError(close, () => new Guard<Native, Reply>(handler, { ...edge, customize }))
  return {
    guard,
    warnings,
    rules,
    close() {
      guard.close()
      return close()
    },
  }
}

/**
 * Warns about rules of the gate that count by an identity without a source. Covers only the rule set that decides requests.
 * Other handlers do not expose their rules, so nothing is watched for them.
 */
export function warnOfMissingSources(
  handler: Handler,
  options: IdentitySources & Pick<GuardOptions, 'ruleSetId' | 'logger'>,
): (() => void) | undefined {
  if (!isGate(handler)) return undefined
  const rules: WatchedRules = {
    get ruleSets() {
      return handler.ruleSets
    },
    warnings: warningsOf(handler, options),
    on: (name, listener) => handler.on(name, listener),
  }
  const { ruleSetId } = options
  return watchIdentitySources(rules, options, ({ id }) => id === (ruleSetId ?? handler.defaultRuleSetId))
}

const isGate = (handler: Handler & Partial<FluxGate>): handler is FluxGate =>
  Array.isArray(handler.ruleSets) && handler.on !== undefined && handler.warnings !== undefined

const warningsOf = (handler: Handler, { logger }: Pick<GuardOptions, 'logger'>): Warnings =>
  logger === undefined && isGate(handler) ? handler.warnings : new Warnings(logger)

/** Throws if the gate has rule sets, but not the one that the middleware would apply. */
export function requireRuleSet(handler: Handler, ruleSetId: string | undefined): void {
  if (!isGate(handler)) return
  const { ruleSets, defaultRuleSetId } = handler
  const isKnown = ruleSetId === undefined ? defaultRuleSetId !== undefined : ruleSets.some(({ id }) => id === ruleSetId)
  if (isKnown || ruleSets.length === 0) return
  const message = unknownRuleSet(
    ruleSetId,
    ruleSets.map(({ id }) => id),
  )
  throw new FluxGateError('FLUXGATE_RULE_SET_UNKNOWN', `Options of rateLimit: ${message}`)
}

/** Compiles the inline rules of the options. The HTTP edge and the storage are the same for all of them. */
function compileRules<Native, Reply>(
  { limits, store: _store, maxConcurrentWaits: _waits, ipv6Prefix, ...document }: Partial<NamedLimits<Native>>,
  edge: GuardOptions<Native, Reply>,
  { ruleSetOf = () => inlineName }: InlineScope<Native>,
): ReadonlyMap<string, CompiledInlineRule<Native>> {
  const compile = (name: string, rule: object, place?: string) =>
    [name, compileInlineRule({ id: name, ...rule }, { ruleSetId: ruleSetOf(name), edge, ipv6Prefix, place })] as const
  if (limits === undefined) return new Map([compile(inlineName, document)])
  return new Map(Object.entries(limits).map(([name, rule]) => compile(name, rule, `limits.${name}`)))
}

/** A decision identifies rules by their IDs, so these must differ. */
function checkRules(rules: ReadonlyMap<string, CompiledInlineRule<never>>): void {
  const owners = new Map<string, string>()
  const issues = rules.size === 0 ? [{ path: 'limits', message: 'must have at least one rule' }] : []
  for (const [name, { plan }] of rules)
    for (const id of plan.rules.keys()) {
      const owner = owners.get(id)
      if (owner !== undefined)
        issues.push({
          path: `limits.${name}.id`,
          message: `must be unique; limits.${owner} has the same, ${quoted(id)}`,
        })
      owners.set(id, name)
    }
  if (issues.length > 0) throw configInvalid('Options of rateLimit', issues)
}

/** Splits middleware options into options of the HTTP edge, and inline rules with their storage. */
export function splitOptions<Native, Reply>(
  options: RateLimitOptions<Native, Reply>,
): {
  edge: GuardOptions<Native, Reply>
  limit: InlineStorage & Partial<NamedLimits<Native>>
} {
  const entries = Object.entries(options)
  return {
    edge: Object.fromEntries(entries.filter(([name]) => isEdgeOption(name))),
    limit: Object.fromEntries(entries.filter(([name]) => !isEdgeOption(name))) as InlineStorage,
  }
}
