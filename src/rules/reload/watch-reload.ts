import type { ReloadStrategy, RuleSetProvider } from '../../core/rule-set-provider.js'

/**
 * Reloads when the provider, which must have `watch`, notices a change. It also does when the provider reports trouble:
 * what is wrong with the rules then shows where every failed reload does, and is over as soon as they can be read again.
 */
export function watchReload(provider: RuleSetProvider, onError: (error: unknown) => void = () => {}): ReloadStrategy {
  return {
    name: 'WATCH',
    start(reload) {
      const changed = (): void => {
        // That it failed was told by the reload itself.
        reload().catch(() => {})
      }
      const stop = provider.watch?.(changed, (error) => {
        onError(error)
        changed()
      })
      return () => stop?.()
    },
  }
}
