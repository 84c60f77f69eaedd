import type { Rule } from '../core/rule.js'

/** A parsed rule for tests, with the defaults of a rule document. */
export const plainRule = (fields: Partial<Rule> = {}): Rule => ({
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
  ...fields,
})
