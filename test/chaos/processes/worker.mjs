// @ts-check
/**
 * A process under test that asks by itself: through the library, or through an HttpHandler with a server behind it. Its
 * argument says which, and under which load it starts.
 */
import { createFluxGate, createLimiter } from 'fluxgate-js'
import { HttpHandler } from 'fluxgate-js/handlers'
import { redisStore } from 'fluxgate-js/redis'
import { answerOf, Load } from './load.mjs'

const { kind, self, rules, store, limiter: limiterRule, server, plan, breaks } = JSON.parse(process.argv[2] ?? '')
const send = (/** @type {object} */ message) => process.send?.(message)

/** @typedef {import('./load.mjs').Request} Request */

async function library() {
  const { where, prefix } = store
  const limiter = createLimiter({ ...limiterRule, store: redisStore(where, { prefix }) })
  const beside = new Load(
    async ({ user, permits }) => {
      const answer = answerOf(await limiter.consume(user, permits), self)
      return {
        ...answer,
        charges: answer.charges.map((/** @type {any} */ charge) => ({ ...charge, rule: 'limiter' })),
      }
    },
    (entry) => send({ entry }),
  )
  // A limiter is asked from the first moment: nothing waits for its connection but the decisions themselves.
  if (plan) startBeside(beside, plan)
  const gate = await createFluxGate({ rules, store: breaks ? 'memory' : { ...where, prefix } })
  const ask = async (/** @type {Request} */ { path, user, api, permits }) =>
    answerOf(await gate.check({ userId: user, apiKey: api, path, method: 'GET' }, { permits }), self)
  return { ask, beside }
}

const startBeside = (/** @type {Load | undefined} */ beside, /** @type {any} */ given) =>
  beside?.start({ ...given, seed: given.seed + 1, perSecond: given.perSecond / 6, paths: ['/limiter'] })

async function remote() {
  let lastError = ''
  const fallbackGate = await createFluxGate({ rules })
  const fallback = {
    check: async (/** @type {any} */ context, /** @type {any} */ options) => {
      // The handler reports the error just before it asks here.
      const cause = lastError
      const decision = await fallbackGate.check(context, options)
      return { ...decision, fallbackAfter: cause }
    },
    refund: (/** @type {any} */ context, /** @type {any} */ options) => fallbackGate.refund(context, options),
  }
  const onError = (/** @type {unknown} */ error) => {
    lastError = String(error)
  }
  const handler = new HttpHandler({ url: server.url, fallback, onError })
  const ask = async (/** @type {Request} */ { path, user, api, permits }) => {
    const context = { userId: user, apiKey: api, path, method: 'GET' }
    const decision = await handler.check(context, { ruleSetId: server.ruleSetId, permits })
    if (!('fallbackAfter' in decision)) return answerOf(decision, server.name)
    const answer = answerOf(decision, self)
    return { ...answer, reason: `${answer.reason} after ${decision.fallbackAfter}` }
  }
  return { ask, beside: undefined }
}

const { ask, beside } = await (kind === 'library' ? library() : remote())
const load = new Load(ask, (entry) => send({ entry }))

process.on('message', (/** @type {any} */ { start, stop, report }) => {
  if (start) {
    load.start(start)
    startBeside(beside, start)
  }
  if (stop) {
    load.stop()
    beside?.stop()
  }
  if (report) send({ pending: [...load.pending, ...(beside?.pending ?? [])] })
})
// Without requests to make, only the harness keeps this process.
process.channel?.ref()
if (plan) load.start(plan)
send({ ready: true })
