// @ts-check
/** The cost of finding one rule among ten and among ten thousand, for the matcher alone and through the gate. */
import { addresses, everyKey, randomOrder } from '../access.mjs'
import { compileRules, createFluxGate, parseRuleSets } from '../fluxgate.mjs'
import { sideBySide, timesAsFast } from '../measure.mjs'

export const title = 'Matching'

const few = 10
const many = 10_000
/** Maximum cost of many rules relative to few. */
const atMost = 1.5
const names = {
  few: `${few} rules`,
  sameTen: `${many.toLocaleString('en')} rules, requests for ten of them`,
  all: `${many.toLocaleString('en')} rules, requests for all of them`,
  fewByCondition: `${few} rules on one path, selected by a condition`,
  allByCondition: `${many.toLocaleString('en')} rules on one path, selected by a condition`,
}

/** @type {import('../results/report.mjs').Section} */
export async function matching(effort) {
  const order = randomOrder(many, effort.operations)
  const matcher = await sideBySide(`${title}, matcher`, matchers(), order, effort, (share) => share === 1)
  const gate = await throughTheGate(effort)
  const relativeCost = (/** @type {typeof matcher} */ rows, /** @type {string} */ name, than = names.few) =>
    timesAsFast(rows, than, name)
  return {
    title,
    note: 'Every row has the same number of different requests; only the rules differ. Requests for all of 10,000 rules in random order miss the CPU cache; requests for ten of them do not.',
    tables: [
      { title: 'Matcher', rows: matcher, baseline: names.few },
      { title: 'gate.check, one band per IP', rows: gate, baseline: names.few },
    ],
    ratios: [
      {
        what: 'cost of matching, 10,000 vs 10 rules, same requests',
        measured: relativeCost(matcher, names.sameTen),
        atMost,
      },
      {
        what: 'cost of matching, 10,000 vs 10 rules, requests for all',
        measured: relativeCost(matcher, names.all),
        atMost,
      },
      {
        what: 'cost of matching, 10,000 vs 10 rules, by condition',
        measured: relativeCost(matcher, names.allByCondition, names.fewByCondition),
        atMost,
      },
      { what: 'cost of check, 10,000 vs 10 rules, same requests', measured: relativeCost(gate, names.sameTen), atMost },
    ],
  }
}

const bands = [{ capacity: 1000, window: '1d' }]

function byPath(/** @type {number} */ count) {
  const rules = Array.from({ length: count }, (_, i) => ({
    id: `service-${i}`,
    path: `/api/service-${i}/items/*`,
    method: 'GET',
    bands,
  }))
  return { id: 'services', rules }
}

function byCondition(/** @type {number} */ count) {
  const rules = Array.from({ length: count }, (_, i) => ({
    id: `tenant-${i}`,
    path: '/api/items/*',
    method: 'GET',
    when: { 'attributes.tenant': `tenant-${i}` },
    bands,
  }))
  return { id: 'tenants', rules }
}

const pathRequest = (/** @type {number} */ rules) => (/** @type {unknown} */ _, /** @type {number} */ i) => ({
  method: 'GET',
  path: `/api/service-${i % rules}/items/${i}`,
})

const conditionRequest = (/** @type {number} */ rules) => (/** @type {unknown} */ _, /** @type {number} */ i) => ({
  method: 'GET',
  path: `/api/items/${i}`,
  attributes: { tenant: `tenant-${i % rules}` },
})

function matchers() {
  const manyPaths = compile(byPath(many))
  return [
    asking(names.few, compile(byPath(few)), pathRequest(few)),
    asking(names.sameTen, manyPaths, pathRequest(few)),
    asking(names.all, manyPaths, pathRequest(many)),
    asking(names.fewByCondition, compile(byCondition(few)), conditionRequest(few)),
    asking(names.allByCondition, compile(byCondition(many)), conditionRequest(many)),
  ]
}

function compile(/** @type {import('../../src/index.js').RuleSetInput} */ document) {
  const [ruleSet] = parseRuleSets([document])
  if (ruleSet === undefined) throw new Error('The rules of the benchmark contain no rule set.')
  return compileRules(ruleSet)
}

/**
 * @param {string} name
 * @param {import('../../src/core/matching/rule-matcher.js').RuleMatcher} matcher
 * @param {(_: unknown, i: number) => import('../../src/index.js').RequestContext} request
 * @returns {import('../measure.mjs').Contender}
 */
function asking(name, matcher, request) {
  const requests = Array.from({ length: many }, request)
  return {
    name,
    batch(order) {
      let allowed = 0
      let last
      for (let i = 0; i < order.length; i++) {
        const request = /** @type {typeof requests[number]} */ (requests[/** @type {number} */ (order[i])])
        last = matcher.match(request, /** @type {string} */ (matcher.interpretPath(request)))
        if (last.length === 1) allowed++
      }
      return { allowed, last }
    },
  }
}

async function throughTheGate(/** @type {import('../results/report.mjs').Pace} */ effort) {
  const ips = addresses(effort.keys)
  const contenders = [
    await gateOf(names.few, byPath(few), ips, few),
    await gateOf(names.sameTen, byPath(many), ips, few),
    await gateOf(names.all, byPath(many), ips, many),
  ]
  for (const { batch } of contenders) await batch(everyKey(ips.length))
  const order = randomOrder(ips.length, effort.operations)
  return sideBySide(`${title}, check`, contenders, order, effort, (share) => share === 1)
}

/**
 * @param {string} name
 * @param {import('../../src/index.js').RuleSetInput} document
 * @param {readonly string[]} ips
 * @param {number} asked number of rules that are requested
 * @returns {Promise<import('../measure.mjs').Contender>}
 */
async function gateOf(name, document, ips, asked) {
  const gate = await createFluxGate({ rules: [document] })
  const paths = Array.from({ length: many }, pathRequest(asked)).map(({ path }) => path)
  return {
    name,
    close: () => gate.close(),
    async batch(order) {
      let allowed = 0
      let last
      for (let i = 0; i < order.length; i++) {
        const client = /** @type {number} */ (order[i])
        last = await gate.check({
          clientIp: /** @type {string} */ (ips[client]),
          method: 'GET',
          path: /** @type {string} */ (paths[client % many]),
        })
        if (last.allowed && last.bands.length === 1) allowed++
      }
      return { allowed, last }
    },
  }
}
