import type { Rule } from '../core/rule.js'

/** A rule as the engine sees it, for tests: what is not given is as in a document that does not say it. */
export const plainRule = (given: Partial<Rule> = {}): Rule => ({
  id: 'rule',
  enabled: true,
  priority: 0,
  path: '/**',
  methods: [],
  when: [],
  limitScope: 'IP',
  compositeKeyFields: [],
  onMissingKey: 'ANONYMOUS',
  bands: [],
  permits: 1,
  policy: 'REJECT',
  mode: 'ENFORCE',
  consistency: 'EXACT',
  overrides: false,
  ...given,
})
