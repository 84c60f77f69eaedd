/** Exit statuses of all commands. `negative` is a negative result (rejected, invalid); `failed` means that there is no result. */
export const exitStatus = { ok: 0, negative: 1, failed: 2 } as const
