import type { ReloadStrategy } from '../../core/rule-set-provider.js'

/** A reload strategy without automatic reloads. `gate.reload()` still works. */
export const noReload: ReloadStrategy = { name: 'NONE', start: () => () => {} }
