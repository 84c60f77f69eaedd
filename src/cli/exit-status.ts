/** What a script can rely on: `no` is an answer, `failed` means that there is none. */
export const exitStatus = { ok: 0, no: 1, failed: 2 } as const
