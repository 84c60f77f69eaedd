/** Exit statuses of all commands. `no` is a negative result (rejected, invalid); `failed` means that there is no result. */
export const exitStatus = { ok: 0, no: 1, failed: 2 } as const
