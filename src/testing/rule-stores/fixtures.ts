/** Fixtures that the parts of the rule store contract share. */
import assert from 'node:assert/strict'
import type { Page, PageQuery, RuleStore } from '../../core/contracts/rule-store.js'
import { FluxGateError } from '../../core/errors.js'
import type { ManualClock } from '../manual-clock.js'

export interface RuleStoreTest {
  readonly store: RuleStore
  readonly clock: ManualClock
  open(): Promise<RuleStore>
}

/** Registers a test with empty rule storage. */
export type WithRuleStore = (title: string, test: (bed: RuleStoreTest) => Promise<void>) => void

export const startMs = Date.UTC(2026, 0, 31, 12)
export const by = 'ann'
export const rule = (id: string, more: object = {}) => ({ id, ...more, bands: [{ capacity: 10, window: '1m' }] })

export const field = (document: unknown, name: string): unknown => (document as Record<string, unknown>)[name]

export async function rejects(promise: Promise<unknown>, code: string): Promise<void> {
  const error = await promise.then(
    () => assert.fail(`resolved instead of rejecting with ${code}`),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof FluxGateError, String(error))
  assert.equal(error.code, code)
}

export async function issuesOf(promise: Promise<unknown>): Promise<string[]> {
  const error = await promise.then(
    () => assert.fail('resolved instead of rejecting with FLUXGATE_RULES_INVALID'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof FluxGateError && error.code === 'FLUXGATE_RULES_INVALID', String(error))
  return error.errors.map(({ path }) => path)
}

export async function pagesOf<T>(
  read: (query: PageQuery) => Promise<Page<T>>,
  limit: number,
): Promise<(readonly T[])[]> {
  const pages: (readonly T[])[] = []
  let cursor: string | undefined
  do {
    const page = await read({ limit, cursor })
    pages.push(page.items)
    assert.ok(page.items.length <= limit && /^[\w-]+$/.test(page.cursor ?? '-'))
    cursor = page.cursor ?? undefined
  } while (cursor !== undefined && pages.length < 1_000)
  return pages
}
