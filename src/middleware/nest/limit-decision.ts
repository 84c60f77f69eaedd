/** The decision about a call of Nest, for the parameter decorator `@RateLimitDecision()`. */
import { createRequire } from 'node:module'
import type { Decision } from '../../core/decision.js'
import { type NestContext, subjectOf } from './calls/nest-call.js'

const decisions = new WeakMap<object, Decision>()

/** Stores the decision about a call. */
export const setDecision = (context: NestContext, decision: Decision): void =>
  void decisions.set(subjectOf(context), decision)

type CreateParamDecorator = (factory: (data: unknown, context: NestContext) => unknown) => () => ParameterDecorator

/**
 * Decorator of a parameter that receives the decision about the request, GraphQL field or WebSocket message; undefined if it was not
 * counted.
 *
 * @example
 * hello(@RateLimitDecision() decision: Decision) {}
 */
export function RateLimitDecision(): ParameterDecorator {
  // Loaded on demand, so that this entry loads without Nest.
  const { createParamDecorator } = createRequire(import.meta.url)('@nestjs/common') as {
    createParamDecorator: CreateParamDecorator
  }
  return createParamDecorator((_, context) => decisions.get(subjectOf(context)))()
}
