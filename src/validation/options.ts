import { configInvalid } from './config-invalid.js'
import { noIssues } from './issues.js'
import { type Kinds, readValue } from './kind.js'
import { object } from './structures.js'

/**
 * Validates options given in code. Unknown options throw instead of being ignored.
 *
 * @param source names the options in the message, such as `Options of redisStore`
 * @throws FluxGateError `FLUXGATE_CONFIG_INVALID`, with every issue in `errors`
 */
export function checkOptions(source: string, options: unknown, kinds: Kinds, allowed = 'an object of options'): void {
  const issues = noIssues()
  readValue(object({}, kinds, { allowed }), options, '', issues)
  if (issues.count > 0) throw configInvalid(source, issues.kept)
}
