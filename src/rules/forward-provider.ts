import type { RuleSetProvider } from '../core/contracts/rule-set-provider.js'

/** Forwards all methods of a provider, as a base for wrappers that override some of them. */
export function forwardProvider(provider: RuleSetProvider): RuleSetProvider {
  const { source, watchKind } = provider
  const [watch, canWatch] = [provider.watch?.bind(provider), provider.canWatch?.bind(provider)]
  const isPoller = provider.isPoller?.bind(provider)
  const [onEdit, require] = [provider.onEdit?.bind(provider), provider.require?.bind(provider)]
  return {
    source,
    load: () => provider.load(),
    ...(watch && { watch }),
    ...(watchKind && { watchKind }),
    ...(canWatch && { canWatch }),
    ...(isPoller && { isPoller }),
    ...(onEdit && { onEdit }),
    ...(require && { require }),
  }
}
