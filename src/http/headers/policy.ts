/** How a band is named to callers, in headers and in problems. */
export const policyName = (ruleId: string, label: string): string => `${ruleId}.${label}`

/** Whole seconds that are not too early. */
export const secondsUp = (ms: number): number => Math.ceil(ms / 1_000)
