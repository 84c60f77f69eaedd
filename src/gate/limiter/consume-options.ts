import type { ChargeVariant } from '../../core/bucket-store.js'
import type { Decision } from '../../core/decision.js'
import { FluxGateError } from '../../core/errors.js'
import type { CallBandInput } from '../../rules/schema/input.js'
import type { Kind } from '../../validation/kind.js'
import { anyValue, boolean } from '../../validation/kinds.js'
import { checkArgument } from '../../validation/options.js'
import { object } from '../../validation/structures.js'

/** Options of `Limiter.consume` and `Limiter.consumeSync`. */
export interface ConsumeOptions {
  /** Permits to take; default 1. 0 changes nothing and returns the current state. */
  readonly permits?: number | undefined
  /**
   * Limits of this call, on the same buckets. A band without a label belongs to the band of the rule at the same position, whose
   * window and algorithm are its defaults.
   */
  readonly bands?: readonly CallBandInput[] | undefined
  /** Takes as many permits as are available, at least one; `granted` of the decision is their number. */
  readonly partial?: boolean | undefined
  /**
   * Takes the permits in any case. Buckets without enough permits go into debt, by at most their capacity, and reject requests
   * until it is paid.
   */
  readonly force?: boolean | undefined
}

/** `permits` and `bands` are validated where they are used. */
const consumeKind: Kind<ConsumeOptions> = object(
  {},
  { permits: anyValue, bands: anyValue, partial: boolean, force: boolean } as Record<
    keyof ConsumeOptions,
    Kind<unknown>
  >,
  { allowed: 'a number of permits, or { permits, bands, partial, force }' },
) as Kind<ConsumeOptions>

/** Validates options and returns how the charge differs from a plain one. */
export function checkConsumeOptions(options: ConsumeOptions): { readonly variant: ChargeVariant | undefined } {
  const { partial, force } = checkArgument('options', options, consumeKind)
  if (partial && force)
    throw new FluxGateError(
      'FLUXGATE_ARGUMENT_INVALID',
      'options.force must not be combined with partial: a forced charge always takes all permits. Remove one of them.',
    )
  return { variant: force ? 'FORCE' : partial ? 'PARTIAL' : undefined }
}

/** The state of a key as the result of a call for 0 permits. A partial charge of 0 permits has taken none. */
export function stateFor(
  variant: ChargeVariant | undefined,
  state: Decision | Promise<Decision>,
): Decision | Promise<Decision> {
  if (variant !== 'PARTIAL') return state
  return state instanceof Promise ? state.then(withoutGrant) : withoutGrant(state)
}

const withoutGrant = (decision: Decision): Decision => ({ ...decision, granted: 0 })
