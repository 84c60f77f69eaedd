/**
 * Creates a self-signed certificate for `localhost` and 127.0.0.1: the repository contains no secrets, nothing expires,
 * and openssl is not needed. Node.js has no API for it, hence the few lines of DER.
 */
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'

/** Certificate and key in PEM. */
export interface KeyPair {
  readonly cert: string
  readonly key: string
}

const sequence = 0x30
const set = 0x31
const objectId = 0x06
const octets = 0x04
const utf8 = 0x0c
const time = 0x18
const integer = 0x02
const bits = 0x03

const ecdsaWithSha256 = der(sequence, der(objectId, hex('2a8648ce3d040302')))
const commonName = der(objectId, hex('550403'))
const subjectAltName = der(objectId, hex('551d11'))
const basicConstraints = der(objectId, hex('551d13'))

export function selfSigned(): KeyPair {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const name = der(sequence, der(set, der(sequence, commonName, der(utf8, Buffer.from('localhost')))))
  const now = Date.now()
  const validity = der(sequence, instant(now - 86_400_000), instant(now + 86_400_000))
  const names = der(sequence, der(0x82, Buffer.from('localhost')), der(0x87, hex('7f000001')))
  const isAuthority = der(sequence, hex('0101ff'))
  const extensions = der(
    sequence,
    der(sequence, subjectAltName, der(octets, names)),
    der(sequence, basicConstraints, hex('0101ff'), der(octets, isAuthority)),
  )
  const certificate = der(
    sequence,
    der(0xa0, der(integer, hex('02'))),
    der(integer, hex('01'), randomBytes(8)),
    ecdsaWithSha256,
    name,
    validity,
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, extensions),
  )
  const signature = der(bits, hex('00'), sign('sha256', certificate, privateKey))
  const signed = der(sequence, certificate, ecdsaWithSha256, signature)
  const lines = signed.toString('base64').replace(/.{64}/g, '$&\n')
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
  }
}

function hex(text: string): Buffer {
  return Buffer.from(text, 'hex')
}

/** A DER value with its tag and length. Two bytes of length are enough for a certificate. */
function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const header = length < 0x80 ? [tag, length] : [tag, 0x82, length >> 8, length & 0xff]
  if (length >= 0x80 && length < 0x100) header.splice(1, 2, 0x81)
  return Buffer.concat([Buffer.from(header), content])
}

function instant(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/\.\d+|[-:T]/g, '')
  return der(time, Buffer.from(digits))
}
