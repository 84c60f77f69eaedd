import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { FluxGateError, messageOf } from '../core/errors.js'

export interface TlsPair {
  readonly cert: Buffer
  readonly key: Buffer
}

/** A certificate and its key, of files in PEM, that fit together. `place` is what the configuration calls them. */
export function readTlsPair(place: string, files: { readonly cert: string; readonly key: string }): TlsPair {
  const pair = { cert: readPem(`${place}.cert`, files.cert), key: readPem(`${place}.key`, files.key) }
  try {
    createSecureContext(pair)
  } catch (cause) {
    throw tlsInvalid(place, `the certificate and the key cannot be used: ${messageOf(cause)}`, cause)
  }
  return pair
}

function readPem(place: string, path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (cause) {
    throw tlsInvalid(place, `${JSON.stringify(path)} cannot be read: ${messageOf(cause)}`, cause)
  }
}

const tlsInvalid = (path: string, message: string, cause: unknown): FluxGateError =>
  new FluxGateError('FLUXGATE_CONFIG_INVALID', `${path}: ${message}`, { cause, errors: [{ path, message }] })
