/** Compares rule stores with a model after each of many random edits by several editors. */
import assert from 'node:assert/strict'
import type { Edit, RuleDocument, RuleStore } from '../../core/contracts/rule-store.js'
import { FluxGateError } from '../../core/errors.js'
import { type Random, seededRandom } from '../../core/seeded-random.js'
import type { ManualClock } from '../manual-clock.js'
import { RuleStoreModel } from '../models/rule-store-model.js'

export interface RandomEdits {
  readonly edits: number
  readonly seed: number
  readonly clock: ManualClock
}

/** All stores must share the same storage, which must be empty. */
export async function checkRandomEdits(
  stores: readonly RuleStore[],
  { edits, seed, clock }: RandomEdits,
): Promise<void> {
  const random = seededRandom(seed)
  const model = new RuleStoreModel()
  for (let step = 0; step < edits; step++) {
    const where = `seed ${seed}, edit ${step}`
    const [editor, reader] = [pick(random, stores), pick(random, stores)]
    clock.advance(pick(random, [0, 1, 1_000]))
    const { setId, name, run } = randomEdit(random, model)
    const at = new Date(clock.now()).toISOString()
    const expected = codeOrResult(() => run.model(model, at))
    const found = await run.store(editor).then(
      (value) => value,
      (error: unknown) => (error instanceof FluxGateError ? error.code : Promise.reject(error)),
    )
    assert.deepEqual(found, expected, `${where}: ${name}`)
    assert.deepEqual(await reader.getRuleSet(setId), model.read(setId), `${where}: after ${name}`)
    if (step % 10 === 0) await compareSearch(reader, setId, model, random, where)
  }
  const all = await (stores[0] as RuleStore).listRuleSets({ limit: 1_000 })
  assert.deepEqual(all.items, model.readAll(), `seed ${seed}: at the end`)
}

interface RandomEdit {
  readonly setId: string
  readonly name: string
  readonly run: {
    model(model: RuleStoreModel, at: string): unknown
    store(store: RuleStore): Promise<unknown>
  }
}

const setIds = ['api', 'api:v2', 'web']
const ruleIds = ['a', 'a:b', 'login', 'search', 'z']
const words = ['Login', 'search all', 'öffentlich', '검색', '', 'a']

function randomEdit(random: Random, model: RuleStoreModel): RandomEdit {
  const setId = pick(random, setIds)
  const ruleId = pick(random, ruleIds)
  const present = model.read(setId)
  const seen = {
    set: present?.version ?? 0,
    rule: Number(present?.rules.find(({ id }) => id === ruleId)?.version ?? 0),
  }
  const edit = (version: number): Edit => ({
    by: 'ann',
    ifVersion: pick(random, [undefined, undefined, version, version, version + 1, 0]),
  })
  const kind = random()
  if (kind < 0.2 || (present === undefined && kind < 0.8)) {
    const description = pick(random, [undefined, 'one', 'two'])
    const rules = ruleIds.filter(() => random() < 0.5).map((id) => randomRule(random, id))
    const document = { id: setId, ...(description !== undefined && { description }), rules }
    const precondition = edit(seen.set)
    return {
      setId,
      name: `put ${setId}`,
      run: {
        model: (one, at) => one.putSet(document, precondition, at),
        store: (store) => store.putRuleSet(document, precondition),
      },
    }
  }
  if (kind < 0.25) {
    const precondition = edit(seen.set)
    return {
      setId,
      name: `delete ${setId}`,
      run: {
        model: (one) => one.deleteSet(setId, precondition),
        store: (store) => store.deleteRuleSet(setId, precondition),
      },
    }
  }
  const precondition = edit(seen.rule)
  if (kind < 0.4)
    return {
      setId,
      name: `delete ${setId}/${ruleId}`,
      run: {
        model: (one) => one.deleteRule(setId, ruleId, precondition),
        store: (store) => store.deleteRule(setId, ruleId, precondition),
      },
    }
  const document = randomRule(random, ruleId)
  return {
    setId,
    name: `put ${setId}/${ruleId}`,
    run: {
      model: (one, at) => one.putRule(setId, document, precondition, at),
      store: (store) => store.putRule(setId, document, precondition),
    },
  }
}

function randomRule(random: Random, id: string): RuleDocument {
  return {
    id,
    ...(random() < 0.5 && { name: pick(random, words) }),
    ...(random() < 0.3 && { description: pick(random, words) }),
    ...(random() < 0.3 && { enabled: random() < 0.5 }),
    ...(random() < 0.6 && { priority: pick(random, [-5, 0, 1, 1_000_000]) }),
    ...(random() < 0.3 && { path: pick(random, ['/login', '/search/**']) }),
    ...(random() < 0.3 && { attributes: { z: random(), a: pick(random, words) } }),
    bands: [{ capacity: pick(random, [1, 10]), window: '1m' }],
  }
}

async function compareSearch(
  store: RuleStore,
  setId: string,
  model: RuleStoreModel,
  random: Random,
  where: string,
): Promise<void> {
  const set = model.read(setId)
  if (set === undefined) return
  const q = pick(random, [undefined, ...words, 'log', 'A', '색', 'zz'])
  const enabled = pick(random, [undefined, true, false])
  const expected = set.rules.filter(
    (rule) =>
      (enabled === undefined || (rule.enabled ?? true) === enabled) &&
      [rule.id, rule.name, rule.description, rule.path].some((text) =>
        String(text ?? '')
          .toLowerCase()
          .includes((q ?? '').toLowerCase()),
      ),
  )
  const { items } = await store.listRules(setId, { limit: 100, q, enabled })
  assert.deepEqual(items, expected, `${where}: search for ${JSON.stringify({ q, enabled })}`)
}

function codeOrResult(run: () => unknown): unknown {
  try {
    return run()
  } catch (error) {
    if (error instanceof FluxGateError) return error.code
    throw error
  }
}

const pick = <T>(random: Random, items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
