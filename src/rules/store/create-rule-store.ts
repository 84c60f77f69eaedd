import { type Clock, systemClock } from '../../core/clock.js'
import { FluxGateError } from '../../core/errors.js'
import { copyWritten } from '../../core/json/written-json.js'
import type { EditedRules } from '../../core/rule-set-provider.js'
import type { Edit, RuleDocument, RuleSetDocument, RuleStore } from '../../core/rule-store.js'
import { filterInSteps, inSlices, manyPerStep, type Steps, sortInSteps } from '../../core/scheduling/steps.js'
import type { RuleRequirement } from '../requirement.js'
import { unchangingRuleSets } from '../schema/schema.js'
import { buildPage, isNumber, isRank, isText, parsePageQuery } from './page.js'
import {
  checkEdit,
  conflict,
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
  function edit(ruleSetId: string, given: Edit, plan: Plan) {
    checkEdit(given)
    const result = turn.then(() => editNow(ruleSetId, given, plan))
    turn = result.catch(() => {})
    return result
  }

  async function editNow(ruleSetId: string, given: Edit, plan: Plan) {
    for (let attempt = 1; attempt <= maxAttempts; attempt++) {
      open()
      const kept = await storage.read(ruleSetId)
      const at = new Date(clock.now()).toISOString()
      const change = await inSlices(plan({ ruleSetId, kept, edit: given, at }))
      if (change === undefined) return { kept, change }
      if (!(await storage.commit(change))) continue
      // Gates in this process use the new rules before the edit resolves.
      const edited = { ruleSetId, removed: change.remove }
      await Promise.all([...listeners].map((listener) => listener(edited)))
      return { kept, change }
    }
    throw conflict(
      `Rule set "${ruleSetId}" was changed concurrently in each of ${maxAttempts} attempts. Nothing was changed: repeat the edit.`,
    )
  }

  async function findRules(ruleSetId: string, search: RuleSearch): Promise<readonly RuleDocument[]> {
    const found = await storage.findRules?.(ruleSetId, search)
    if (found !== undefined) return found
    const kept = await storage.read(ruleSetId)
    existingHead(ruleSetId, kept)
    const matching = await inSlices(findIn(kept.rules, search))
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
      return inSlices(unchangingRuleSets(document, source))
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
      for (const kept of sets.slice(0, limit + 1)) page.push(await inSlices(copyOfSetDocument(kept)))
      return buildPage(page, limit, ({ id }) => id)
    },
    async getRuleSet(id) {
      open()
      const kept = await storage.read(id)
      return exists(kept) ? inSlices(copyOfSetDocument(kept)) : undefined
    },
    async putRuleSet(document, given) {
      open()
      const wanted = await inSlices(validateRuleSet(document, requirements))
      const { kept, change } = await edit(wanted.id, given, (planning) => planPutRuleSet(planning, wanted))
      const after = change?.after ?? kept
      return { document: await inSlices(copyOfSetDocument(after as ExistingRuleSet)), created: !exists(kept) }
    },
    async deleteRuleSet(id, given) {
      open()
      return (await edit(id, given, planDeleteRuleSet)).change !== undefined
    },
    async listRules(ruleSetId, query) {
      open()
      const { limit, position } = parsePageQuery(query, isRank)
      const after = position && { priority: position[0], id: position[1] }
      const { enabled } = query
      const q = query.q === '' ? undefined : query.q?.toLowerCase()
      const found = await findRules(ruleSetId, { q, enabled, after, limit: limit + 1 })
      return buildPage(found.map(copyWritten), limit, (rule) => [priorityOf(rule), rule.id])
    },
    async getRule(ruleSetId, ruleId) {
      open()
      if (storage.readRule !== undefined) return storage.readRule(ruleSetId, ruleId)
      const found = (await storage.read(ruleSetId)).rules.find(({ id }) => id === ruleId)
      return found && copyWritten(found)
    },
    async putRule(ruleSetId, document, given) {
      open()
      const wanted = validateRule(document, requirements, ruleSetId)
      const { kept, change } = await edit(ruleSetId, given, (planning) => planPutRule(planning, wanted))
      const before = kept.rules.find(({ id }) => id === wanted.id)
      return { document: copyWritten((change?.put[0] ?? before) as RuleDocument), created: before === undefined }
    },
    async deleteRule(ruleSetId, ruleId, given) {
      open()
      const { change } = await edit(ruleSetId, given, (planning) => planDeleteRule(planning, ruleId))
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

type Planning = Parameters<typeof planPutRule>[0]
type Plan = (planning: Planning) => Steps<RuleSetChange | undefined>

const exists = (kept: RuleSetState): kept is ExistingRuleSet => kept.head !== undefined
