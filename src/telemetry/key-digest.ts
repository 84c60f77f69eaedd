import { createHash } from 'node:crypto'

/** What stands for an identity where it must not be shown: the same for the same one, in every process. */
export const keyDigest = (key: string): string =>
  `sha256:${createHash('sha256').update(key).digest('hex').slice(0, 16)}`

export type ShowKey = (key: string) => string

const mostShown = 256

/** How identities are shown in logs, events and statistics. */
export const showKey = (revealKeys: boolean): ShowKey =>
  revealKeys ? (key) => (key.length > mostShown ? `${key.slice(0, mostShown)}…` : key) : keyDigest
