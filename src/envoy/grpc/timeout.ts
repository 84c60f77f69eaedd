const unitMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 0.001, n: 0.000_001 }

/** Parses the value of `grpc-timeout`, in milliseconds. Returns undefined if it is missing or invalid. */
export function parseTimeout(value: string | undefined): number | undefined {
  const [, digits = '', unit = ''] = /^(\d{1,8})([HMSmun])$/.exec(value ?? '') ?? []
  const factor = unitMs[unit]
  return factor === undefined ? undefined : Number(digits) * factor
}
