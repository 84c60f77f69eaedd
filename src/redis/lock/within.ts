import { FluxGateError } from '../../core/errors.js'

/** The promise, or a rejection after so long; what comes of it later is nobody's business any more. */
export function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new FluxGateError('FLUXGATE_STORE_TIMEOUT', `Redis did not answer within ${Math.round(ms)} ms.`))
    }, ms)
  })
  return Promise.race([promise, tooLate]).finally(() => clearTimeout(timer))
}
