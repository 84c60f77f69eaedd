import { register } from './nest-scopes.js'

/** What methods and classes say about their limits. False: not limited. */
const limits = new WeakMap<object, unknown>()

/** As TypeScript's `experimentalDecorators` call it, and as the language's own decorators are called. */
export type PlaceDecorator = (
  target: object,
  context?: string | symbol | ClassMemberDecoratorContext | ClassDecoratorContext,
  descriptor?: PropertyDescriptor,
) => void

export const limitedBy =
  (limit: unknown): PlaceDecorator =>
  (target, _context, descriptor) => {
    const method: unknown = descriptor?.value ?? target
    limits.set(method as object, limit)
    if (descriptor !== undefined) register(target.constructor)
    else if (isClass(target)) register(target)
  }

export interface FoundLimit {
  readonly limit: unknown
  /** False: of the class, and so of all its methods together. */
  readonly isOfMethod: boolean
}

/** The nearest word counts: the method's, else that of its class or of one above it. */
export function limitFor(method: object, owner: object): FoundLimit {
  if (limits.has(method)) return { limit: limits.get(method), isOfMethod: true }
  for (let at: object | null = owner; at !== null; at = Object.getPrototypeOf(at)) {
    if (limits.has(at)) return { limit: limits.get(at), isOfMethod: false }
  }
  return { limit: undefined, isOfMethod: false }
}

/** Methods are functions too, but have no prototype. */
const isClass = (target: object): target is { readonly name: string } =>
  typeof target === 'function' && target.prototype !== undefined
