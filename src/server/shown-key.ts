import { hash } from 'node:crypto'

/** What stands for an identity where it must not be told: the same for the same one, and no way back. */
export const keyDigest = (key: string): string => `sha256:${hash('sha256', key, 'hex').slice(0, 16)}`
