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
  }

/** The nearest word counts: the method's, else that of its class or of one above it. */
export function limitFor(method: object, owner: object): unknown {
  if (limits.has(method)) return limits.get(method)
  for (let at: object | null = owner; at !== null; at = Object.getPrototypeOf(at)) {
    if (limits.has(at)) return limits.get(at)
  }
  return undefined
}
