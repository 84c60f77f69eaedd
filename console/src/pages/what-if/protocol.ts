/** Messages between the page and the worker. */
import type { RuleRun } from '../../../../src/simulate/rules-meter.js'

export interface WhatIfRequest {
  readonly file: File
  readonly current: unknown
  readonly changed: unknown
}

export interface KeyDifference {
  readonly key: string
  readonly ruleId: string
  readonly nowOnly: number
  readonly thenOnly: number
}

export interface Comparison {
  readonly format: string
  readonly lines: number
  readonly badLines: number
  readonly badLineNumbers: readonly number[]
  /** Rules that limit requests in progress. */
  readonly leftOutRules: readonly string[]
  readonly requests: number
  readonly both: number
  readonly nowOnly: number
  readonly thenOnly: number
  readonly rules: readonly {
    readonly ruleId: string
    readonly before: RuleRun | undefined
    readonly after: RuleRun | undefined
  }[]
  readonly keys: readonly KeyDifference[]
  readonly times: readonly number[]
  readonly rejectedNow: readonly number[]
  readonly rejectedThen: readonly number[]
  readonly tookMs: number
}

export type WhatIfReply =
  | { readonly kind: 'progress'; readonly read: number; readonly lines: number }
  | { readonly kind: 'done'; readonly comparison: Comparison }
  | { readonly kind: 'failed'; readonly message: string }
