import type { ReloadStrategy } from '../../core/rule-set-provider.js'

/** Rules are loaded again only when somebody asks. */
export const noReload: ReloadStrategy = { name: 'NONE', start: () => () => {} }
