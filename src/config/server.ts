import type { ValidationIssues } from '../validation/issues.js'
import type { Settings } from './settings.js'

/** Reports a certificate without a key, or a key without a certificate. */
export function checkTls(settings: Settings, issues: ValidationIssues): void {
  for (const section of ['server', 'gateway'] as const) {
    const { tlsCert, tlsKey } = settings[section]
    if ((tlsCert === undefined) === (tlsKey === undefined)) continue
    const missing = tlsCert === undefined ? 'cert' : 'key'
    issues.add(`${section}.tls`, `${missing} is missing; set both cert and key (paths of PEM files), or neither`)
  }
}
