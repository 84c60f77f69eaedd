import type { CheckOptions } from '../core/handler.js'
import { quoted } from '../validation/issues.js'
import { nameHint } from '../validation/nearest.js'
import type { Warnings } from '../validation/warnings.js'

const names: Readonly<Record<keyof CheckOptions, true>> = {
  ruleSetId: true,
  permits: true,
  costs: true,
  peek: true,
  signal: true,
  waitForSlot: true,
  onEnter: true,
  onLeave: true,
}

/** Warns of misspelt options of a check or refund, which would have no effect. */
export function warnOfUnknownOptions(options: object, warnings: Warnings): void {
  for (const name in options)
    if (!Object.hasOwn(names, name))
      warnings.warn(
        'FLUXGATE_ARGUMENT_INVALID',
        `The options of a check have the unknown field ${quoted(name)}; ${nameHint(name, Object.keys(names))}`,
      )
}
