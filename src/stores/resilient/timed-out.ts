import { FluxGateError } from '../../core/errors.js'

export const timedOut = (what: string, timeoutMs: number): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_STORE_TIMEOUT',
    `The bucket store was asked to ${what} and had not answered after ${timeoutMs} ms.`,
  )
