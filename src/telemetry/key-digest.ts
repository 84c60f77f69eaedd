import { createHash } from 'node:crypto'

/** A digest that replaces a key where keys must not be shown. It is the same in every process. */
export const keyDigest = (key: string): string =>
  `sha256:${createHash('sha256').update(key).digest('hex').slice(0, 16)}`

export type ShowKey = (key: string) => string

const maxShownLength = 256

/** Formats keys for logs, events and statistics: in plain text if `revealKeys`, otherwise as digests. */
export const showKey = (revealKeys: boolean): ShowKey =>
  revealKeys ? (key) => (key.length > maxShownLength ? `${key.slice(0, maxShownLength)}…` : key) : keyDigest
