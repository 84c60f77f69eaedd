import { FluxGateError } from '../../core/errors.js'
import type { ReloadStrategy, RuleSetProvider } from '../../core/rule-set-provider.js'

/**
 * Reloads when the provider notices a change. It also does when the provider reports trouble: what is wrong with the
 * rules then shows where every failed reload does, and is over as soon as they can be read again.
 */
export function watchReload(provider: RuleSetProvider, onError: (error: unknown) => void = () => {}): ReloadStrategy {
  const watch = provider.watch?.bind(provider)
  if (watch === undefined) {
    throw new FluxGateError(
      'FLUXGATE_CONFIG_INVALID',
      `Rules from ${provider.source} cannot be watched; use the reload strategy POLLING or NONE.`,
    )
  }
  return {
    name: 'WATCH',
    start(reload) {
      const changed = (): void => {
        reload().catch(onError)
      }
      return watch(changed, (error) => {
        onError(error)
        changed()
      })
    },
  }
}
