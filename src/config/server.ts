import type { Mistakes } from '../validation/issues.js'
import type { Settings } from './settings.js'

/** A certificate is nothing without its key. */
export function checkTls(settings: Settings, mistakes: Mistakes): void {
  for (const section of ['server', 'gateway'] as const) {
    const { tlsCert, tlsKey } = settings[section]
    if ((tlsCert === undefined) === (tlsKey === undefined)) continue
    const missing = tlsCert === undefined ? 'cert' : 'key'
    const allowed = 'both cert and key, paths of files in PEM, or neither'
    mistakes.add(`${section}.tls`, `found no ${missing}; allowed: ${allowed}`)
  }
}
