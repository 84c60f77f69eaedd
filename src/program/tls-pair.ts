import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { FluxGateError, messageOf } from '../core/errors.js'

export interface TlsPair {
  readonly cert: Buffer
  readonly key: Buffer
}

/** Reads a certificate and its key from PEM files and checks that they match. `place` is their path in the configuration. */
export function readTlsPair(place: string, files: { readonly cert: string; readonly key: string }): TlsPair {
  const pair = { cert: readPem(`${place}.cert`, files.cert), key: readPem(`${place}.key`, files.key) }
  try {
    createSecureContext(pair)
  } catch (cause) {
    throw tlsInvalid(place, `certificate and key are invalid or do not match: ${messageOf(cause)}`, cause)
  }
  return pair
}

function readPem(place: string, path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (cause) {
    throw tlsInvalid(place, `cannot read ${JSON.stringify(path)}: ${messageOf(cause)}`, cause)
  }
}

const tlsInvalid = (path: string, message: string, cause: unknown): FluxGateError =>
  new FluxGateError('FLUXGATE_CONFIG_INVALID', `${path}: ${message}`, { cause, errors: [{ path, message }] })
