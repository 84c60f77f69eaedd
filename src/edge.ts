/**
 * The main entry in edge runtimes and browsers: everything of `fluxgate-js` that runs without Node. Functions that need Node
 * throw FLUXGATE_RUNTIME_UNSUPPORTED.
 */
import { FluxGateError } from './core/errors.js'

export { systemClock } from './core/clock.js'
export { FluxGateError } from './core/errors.js'
export { createLimiter } from './gate/limiter/create-limiter.js'
export { parseRuleSets } from './rules/schema/parse-rules.js'
export { memoryStore } from './stores/memory/memory-store.js'
export { resilient } from './stores/resilient/resilient.js'

const needsNode = (name: string) => (): never => {
  throw new FluxGateError(
    'FLUXGATE_RUNTIME_UNSUPPORTED',
    `${name}() needs Node.js, and this is the build for edge runtimes and browsers. Use createLimiter(), or see docs/guide/edge.md.`,
  )
}

export const createFluxGate = needsNode('createFluxGate')
export const fileRuleStore = needsNode('fileRuleStore')
export const fileRules = needsNode('fileRules')
export const objectRules = needsNode('objectRules')
export const copyRules = needsNode('copyRules')
export const exportRules = needsNode('exportRules')
export const importRules = needsNode('importRules')
export const jsonText = needsNode('jsonText')
export const parseJson = needsNode('parseJson')
