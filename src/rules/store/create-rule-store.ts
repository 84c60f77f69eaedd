import { type Clock, systemClock } from '../../core/clock.js'
import type { EditedRules } from '../../core/contracts/rule-set-provider.js'
import type { Edit, RuleDocument, RuleSetDocument, RuleStore } from '../../core/contracts/rule-store.js'
import { FluxGateError } from '../../core/errors.js'
import { copyWithSourceText } from '../../core/json/source-text.js'
import { filterInSteps, inSlices, manyPerStep, type Steps, sortInSteps } from '../../core/scheduling/steps.js'
import type { RuleRequirement } from '../check-provided-rules.js'
import { immutableRuleSets } from '../schema/parse-rules.js'
import { buildPage, isNumber, isRank, isText, parsePageQuery } from './page.js'
import {
  checkEdit,
  conflict,
  type EditContext,
  existingHead,
  planDeleteRule,
  planDeleteRuleSet,
  planPutRule,
  planPutRuleSet,
} from './plan-edit.js'
import {
  compareDocuments,
  copyOfSetDocument,
  documentOfSets,
  matchesSearch,
  priorityOf,
  validateRule,
  validateRuleSet,
} from './rule-document.js'
import type { ExistingRuleSet, RuleSearch, RuleSetChange, RuleSetState, RuleStorage } from './rule-storage.js'

/** Maximum number of attempts of an edit. Each failed attempt means that a concurrent edit succeeded. */
const maxAttempts = 100

/**
 * Creates a rule store on top of a storage: validation, versions, conflicts, pages and listeners. A storage may cache what it
 * reads, so the store returns copies, which callers may modify.
 */
export function createRuleStore(storage: RuleStorage, { clock = systemClock }: { clock?: Clock } = {}): RuleStore {
  const listeners = new Set<(edited: EditedRules) => Promise<unknown>>()
  const requirements = new Set<RuleRequirement>()
  let turn: Promise<unknown> = Promise.resolve()
  let isClosed = false

  const open = (): void => {
    if (isClosed) throw new FluxGateError('FLUXGATE_CLOSED', 'This rule store was closed. Create another one.')
  }

  /** Runs the edits of this process one at a time, so that they only conflict with those of other processes. */
  function edit(ruleSetId: string, editOptions: Edit, plan: Plan) {
    checkEdit(editOptions)
    const result = turn.then(() => editNow(ruleSetId, editOptions, plan))
    turn = result.catch(() => {})
    return result
  }

  async function editNow(ruleSetId: string, editOptions: Edit, plan: Plan) {
    for (let attempt = 1; attempt <= maxAttempts; attempt++) {
      open()
      const stored = await storage.read(ruleSetId)
      const at = new Date(clock.now()).toISOString()
      const change = await inSlices(plan({ ruleSetId, stored, edit: editOptions, at }))
      if (change === undefined) return { stored, change }
      if (!(await storage.commit(change))) continue
      // Gates in this process use the new rules before the edit resolves.
      const edited = { ruleSetId, removed: change.remove }
      await Promise.all([...listeners].map((listener) => listener(edited)))
      return { stored, change }
    }
    throw conflict(
      `Rule set "${ruleSetId}" was changed concurrently in each of ${maxAttempts} attempts. Nothing was changed: repeat the edit.`,
    )
  }

  async function findRules(ruleSetId: string, search: RuleSearch): Promise<readonly RuleDocument[]> {
    const found = await storage.findRules?.(ruleSetId, search)
    if (found !== undefined) return found
    const stored = await storage.read(ruleSetId)
    existingHead(ruleSetId, stored)
    const matching = await inSlices(findIn(stored.rules, search))
    return matching.slice(0, search.limit)
  }

  const { source, watchKind } = storage
  const watch = storage.watch?.bind(storage)
  const canWatch = storage.canWatch?.bind(storage)
  const alone = storage.alone?.bind(storage)
  return {
    source,
    ...(watch !== undefined && { watch }),
    ...(watchKind !== undefined && { watchKind }),
    ...(canWatch !== undefined && { canWatch }),
    ...(alone !== undefined && { alone }),
    async load() {
      open()
      const document = await (storage.loadDocument?.() ??
        storage.readAll().then((sets) => inSlices(documentOfSets(sets))))
      return inSlices(immutableRuleSets(document, source))
    },
    onEdit(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    require(check) {
      requirements.add(check)
      return () => requirements.delete(check)
    },
    async listRuleSets(query) {
      open()
      const { limit, position } = parsePageQuery(query, isText)
      const sets = (await storage.readAll())
        .filter(({ head }) => position === undefined || head.id > position)
        .sort((a, b) => (a.head.id < b.head.id ? -1 : 1))
      const page: RuleSetDocument[] = []
      for (const stored of sets.slice(0, limit + 1)) page.push(await inSlices(copyOfSetDocument(stored)))
      return buildPage(page, limit, ({ id }) => id)
    },
    async getRuleSet(id) {
      open()
      const stored = await storage.read(id)
      return exists(stored) ? inSlices(copyOfSetDocument(stored)) : undefined
    },
    async putRuleSet(document, editOptions) {
      open()
      const requested = await inSlices(validateRuleSet(document, requirements))
      const { stored, change } = await edit(requested.id, editOptions, (context) => planPutRuleSet(context, requested))
      const after = change?.after ?? stored
      return { document: await inSlices(copyOfSetDocument(after as ExistingRuleSet)), created: !exists(stored) }
    },
    async deleteRuleSet(id, editOptions) {
      open()
      return (await edit(id, editOptions, planDeleteRuleSet)).change !== undefined
    },
    async listRules(ruleSetId, query) {
      open()
      const { limit, position } = parsePageQuery(query, isRank)
      const after = position && { priority: position[0], id: position[1] }
      const { enabled } = query
      const q = query.q === '' ? undefined : query.q?.toLowerCase()
      const found = await findRules(ruleSetId, { q, enabled, after, limit: limit + 1 })
      return buildPage(found.map(copyWithSourceText), limit, (rule) => [priorityOf(rule), rule.id])
    },
    async getRule(ruleSetId, ruleId) {
      open()
      if (storage.readRule !== undefined) return storage.readRule(ruleSetId, ruleId)
      const found = (await storage.read(ruleSetId)).rules.find(({ id }) => id === ruleId)
      return found && copyWithSourceText(found)
    },
    async putRule(ruleSetId, document, editOptions) {
      open()
      const requested = validateRule(document, requirements, ruleSetId)
      const { stored, change } = await edit(ruleSetId, editOptions, (context) => planPutRule(context, requested))
      const before = stored.rules.find(({ id }) => id === requested.id)
      return { document: copyWithSourceText((change?.put[0] ?? before) as RuleDocument), created: before === undefined }
    },
    async deleteRule(ruleSetId, ruleId, editOptions) {
      open()
      const { change } = await edit(ruleSetId, editOptions, (context) => planDeleteRule(context, ruleId))
      return change !== undefined
    },
    async history(ruleSetId, query) {
      open()
      const { limit, position } = parsePageQuery(query, isNumber)
      const found = await storage.history(ruleSetId, position ?? Number.MAX_SAFE_INTEGER, limit + 1)
      const { items, cursor } = buildPage(found, limit, ({ setVersion }) => setVersion)
      return { items: items.map(({ entry }) => entry), cursor }
    },
    async close() {
      isClosed = true
      await turn
      await storage.close()
    },
  }
}

function* findIn(rules: readonly RuleDocument[], search: RuleSearch): Steps<RuleDocument[]> {
  const matching = yield* filterInSteps(rules, (rule) => matchesSearch(rule, search), manyPerStep)
  return yield* sortInSteps(matching, compareDocuments)
}

type Plan = (context: EditContext) => Steps<RuleSetChange | undefined>

const exists = (stored: RuleSetState): stored is ExistingRuleSet => stored.head !== undefined
