import type { Mistakes } from '../rules/mistakes.js'
import type { Settings } from './config-settings.js'

/** A certificate is nothing without its key. */
export function checkTls({ tlsCert, tlsKey }: Settings['server'], mistakes: Mistakes): void {
  if ((tlsCert === undefined) === (tlsKey === undefined)) return
  const missing = tlsCert === undefined ? 'cert' : 'key'
  mistakes.add('server.tls', `found no ${missing}; allowed: both cert and key, paths of files in PEM, or neither`)
}
