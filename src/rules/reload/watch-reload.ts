import type { ReloadStrategy, RuleSetProvider } from '../../core/contracts/rule-set-provider.js'

/**
 * Creates a reload strategy that reloads when the provider reports a change; the provider must have `watch`. It also reloads
 * when the provider reports an error, so that the error appears as a failed reload and is cleared by the next successful one.
 */
export function watchReload(provider: RuleSetProvider, onError: (error: unknown) => void = () => {}): ReloadStrategy {
  return {
    name: 'WATCH',
    start(reload) {
      const changed = (): void => {
        // The reload itself reports its failure.
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
