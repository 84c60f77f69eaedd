import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { RuleSetProvider } from '../../core/contracts/rule-set-provider.js'
import type { RuleSet } from '../../core/rule.js'
import { createFluxGate } from '../../gate/create-flux-gate.js'
import type { RuleInput, RuleSetInput } from '../../rules/schema/input.js'
import { parseRuleSets } from '../../rules/schema/parse-rules.js'
import { createGuard, type RateLimitOptions } from './create-guard.js'

const warnings: string[] = []
const onWarning = (warning: Error & { code?: string }): void => {
  if (warning.code === 'FLUXGATE_IDENTITY_UNCONFIGURED') warnings.push(warning.message)
}
beforeEach(() => void process.on('warning', onWarning))
afterEach(async () => {
  await warned()
  process.off('warning', onWarning)
})
/** Node emits warnings in the next tick, which is before this resolves. */
const warned = async (): Promise<string[]> => {
  await new Promise((resolve) => setImmediate(resolve))
  return warnings.splice(0)
}

const rule = (id: string, given: Partial<RuleInput>): RuleInput => ({
  id,
  bands: [{ capacity: 2, window: '1h' }],
  ...given,
})

async function guarded(rules: RuleSetInput[] | RuleSetProvider, options: Partial<RateLimitOptions> = {}) {
  const gate = await createFluxGate({ rules: rules as RuleSetInput[] })
  const { guard, close } = createGuard({ ...options, handler: gate } as RateLimitOptions)
  onTestFinished(async () => {
    await close()
    await gate.close()
  })
  return { gate, guard, close }
}

const requestBy = (user: string) => ({
  method: 'GET',
  url: '/',
  headers: { 'x-user-id': user, 'x-api-key': user },
  remoteAddress: '192.0.2.1',
  signal: () => new AbortController().signal,
})

describe('identities without a source', () => {
  it('are not read from headers that are not configured', async () => {
    const { guard } = await guarded([{ id: 'api', rules: [rule('user', { limitScope: 'USER_ID' })] }])
    const kinds = []
    for (const user of ['a', 'b', 'c']) kinds.push((await guard.admit(requestBy(user), undefined)).kind)
    expect(kinds).toEqual(['ALLOWED', 'ALLOWED', 'REJECTED'])
  })

  it('are reported once per rule of the rule set in use', async () => {
    const used = {
      id: 'used',
      rules: [
        rule('user', { limitScope: 'USER_ID' }),
        rule('both', { limitScope: 'COMPOSITE', compositeKeyFields: ['USER_ID', 'IP', 'API_KEY'] }),
        rule('key', { limitScope: 'CUSTOM', keyField: 'API_KEY' }),
        rule('when', { when: { userId: 'ann' } }),
        rule('off', { limitScope: 'USER_ID', enabled: false }),
        rule('address', {}),
      ],
    }
    const other = { id: 'other', rules: [rule('user', { limitScope: 'USER_ID' })] }
    await guarded([used, other], { ruleSetId: 'used' })
    const message =
      'Rule "user" of rule set "used" counts by USER_ID, but requests have no source for a user id. Set userIdHeader to the header that contains it, or use customize. See docs/reference/errors.md.'
    const found = await warned()
    expect(found[0]).toBe(message)
    expect(found.map((text) => /Rule "(\w+)" of rule set "used" (.*), but/.exec(text)?.slice(1))).toEqual([
      ['user', 'counts by USER_ID'],
      ['both', 'counts by USER_ID'],
      ['both', 'counts by API_KEY'],
      ['key', 'counts by API_KEY'],
      ['when', 'has a condition on userId'],
    ])
  })

  it('are reported after a reload, but not after the limit is closed', async () => {
    let ruleSets: RuleSet[] = parseRuleSets([{ id: 'api', rules: [rule('address', {})] }])
    const { gate, close } = await guarded({ source: 'a test', load: async () => ruleSets })
    expect(await warned()).toEqual([])
    ruleSets = parseRuleSets([{ id: 'api', rules: [rule('user', { limitScope: 'USER_ID' })] }])
    await gate.reload()
    // Large rule sets are checked in slices, so the warning may come some turns later.
    await vi.waitFor(() => expect(warnings).toHaveLength(1))
    await warned()
    await gate.reload()
    expect(await warned()).toEqual([])
    await close()
    ruleSets = parseRuleSets([{ id: 'api', rules: [rule('key', { limitScope: 'API_KEY' })] }])
    await gate.reload()
    expect(await warned()).toEqual([])
  })

  it('are not reported if there is a source', async () => {
    const rules = [{ id: 'api', rules: [rule('user', { limitScope: 'USER_ID' })] }]
    await guarded(rules, { userIdHeader: 'X-User' })
    await guarded(rules, { customize: (context) => context })
    await guarded([{ id: 'api', rules: [rule('key', { limitScope: 'API_KEY' })] }], { apiKeyHeader: 'X-Key' })
    expect(await warned()).toEqual([])
  })

  it('are an error for an inline rule of the middleware', () => {
    const limit = { capacity: 1, window: '1m', limitScope: 'USER_ID' } as const
    expect(() => createGuard(limit)).toThrow(
      expect.objectContaining({
        code: 'FLUXGATE_IDENTITY_UNCONFIGURED',
        message:
          'Options of rateLimit: the rule counts by USER_ID, but requests have no source for a user id. Set userIdHeader to the header that contains it, or use customize.',
      }),
    )
    for (const source of [{ userIdHeader: 'X-User' }, { customize: () => undefined }])
      void createGuard({ ...limit, ...source }).close()
  })
})
