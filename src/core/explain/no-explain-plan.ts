import { FluxGateError } from '../errors.js'
import type { explainPlan as explain } from './explain-plan.js'

/** Replaces `explain-plan` in the build for edge runtimes, where no API of a limit leads to it. */
export const explainPlan: typeof explain = async () => {
  throw new FluxGateError(
    'FLUXGATE_RUNTIME_UNSUPPORTED',
    'explain() needs Node.js, and this is the build for edge runtimes and browsers. See docs/guide/edge.md.',
  )
}
