/** The decision about a request of Nest, for the parameter decorator `@RateLimitDecision()`. */
import { createRequire } from 'node:module'
import type { Decision } from '../../core/decision.js'

const decisions = new WeakMap<object, Decision>()

/** Stores the decision about a request of Node. */
export const setDecision = (raw: object, decision: Decision): void => void decisions.set(raw, decision)

interface HttpContext {
  switchToHttp(): { getRequest(): { readonly raw?: object } }
}

function decisionIn(context: HttpContext): Decision | undefined {
  const request = context.switchToHttp().getRequest()
  return decisions.get(request.raw ?? request)
}

type CreateParamDecorator = (factory: (data: unknown, context: HttpContext) => unknown) => () => ParameterDecorator

/**
 * Decorator of a parameter that receives the decision about the request; undefined if the request was not counted.
 *
 * @example
 * hello(@RateLimitDecision() decision: Decision) {}
 */
export function RateLimitDecision(): ParameterDecorator {
  // Loaded on demand, so that this entry loads without Nest.
  const { createParamDecorator } = createRequire(import.meta.url)('@nestjs/common') as {
    createParamDecorator: CreateParamDecorator
  }
  return createParamDecorator((_, context) => decisionIn(context))()
}
