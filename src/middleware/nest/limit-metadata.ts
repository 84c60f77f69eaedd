/** The limits that decorators set on controllers and methods, and the scopes of these limits. */
import type { LimitScope } from '../limits/route-limits.js'

/** Works with TypeScript's `experimentalDecorators` and with standard decorators. */
export type RateLimitDecorator = (
  target: object,
  context?: string | symbol | ClassMemberDecoratorContext | ClassDecoratorContext,
  descriptor?: PropertyDescriptor,
) => void

/** By method or class. `false` means not limited. */
const limits = new WeakMap<object, unknown>()

export const setLimit =
  (limit: unknown): RateLimitDecorator =>
  (target, _context, descriptor) => {
    const method: unknown = descriptor?.value ?? target
    limits.set(method as object, limit)
    if (descriptor !== undefined) register(target.constructor)
    else if (isClass(target)) register(target)
  }

/** Methods are functions too, but have no prototype. */
const isClass = (target: object): target is Named => typeof target === 'function' && target.prototype !== undefined

interface DeclaredLimit {
  /** Undefined if neither the method nor its class declares a limit. */
  readonly limit: unknown
  scopeOf(): LimitScope
}

/** True if the method itself declares a limit. */
export const hasLimit = (method: object): boolean => limits.has(method)

/** Returns the limit of the method or, if it has none, of its class or the nearest base class. */
export function limitOf(method: Named & object, owner: Named & object): DeclaredLimit {
  if (limits.has(method)) return { limit: limits.get(method), scopeOf: () => methodScope(owner, method) }
  const scopeOf = (): LimitScope => scopesOf(owner).own
  for (let base: object | null = owner; base !== null; base = Object.getPrototypeOf(base)) {
    if (limits.has(base)) return { limit: limits.get(base), scopeOf }
  }
  return { limit: undefined, scopeOf }
}

interface Named {
  readonly name: string
}

interface ClassScopes {
  readonly own: LimitScope
  readonly methods: WeakMap<object, LimitScope>
}

/** Classes with limits, by name, in the order of their definition, which is the same in all processes of a program. */
const classes = new Map<string, WeakRef<object>[]>()
const scopes = new WeakMap<object, ClassScopes>()

/** Called for a class when it or one of its methods gets a limit. */
function register(owner: Named & object): void {
  const known = (classes.get(owner.name) ?? []).filter((one) => one.deref() !== undefined)
  if (known.every((one) => one.deref() !== owner)) known.push(new WeakRef(owner))
  classes.set(owner.name, known)
}

function scopesOf(owner: Named & object): ClassScopes {
  let found = scopes.get(owner)
  if (found === undefined) {
    register(owner)
    found = { own: { name: owner.name, identity: identityOf(owner) }, methods: new WeakMap() }
    scopes.set(owner, found)
  }
  return found
}

function methodScope(owner: Named & object, method: Named & object): LimitScope {
  const { own, methods } = scopesOf(owner)
  let scope = methods.get(method)
  if (scope === undefined) {
    scope = { name: `${owner.name}.${method.name}`, identity: JSON.stringify([own.identity, method.name]) }
    methods.set(method, scope)
  }
  return scope
}

/** Class name, arguments of `@Controller`, and the index among the classes that have both in common. */
function identityOf(owner: Named & object): string {
  const path = controllerPath(owner)
  const alike = (classes.get(owner.name) ?? [])
    .map((one) => one.deref())
    .filter((one) => one && controllerPath(one) === path)
  return JSON.stringify([owner.name, path, alike.indexOf(owner)])
}

/** The arguments of `@Controller`: path, host and version. */
function controllerPath(owner: object): string {
  const { getMetadata } = Reflect as { getMetadata?: (name: string, target: object) => unknown }
  const values = ['path', 'host', '__version__'].map((name) => getMetadata?.(name, owner))
  return JSON.stringify(values, (_, value) =>
    typeof value === 'symbol' || value instanceof RegExp ? String(value) : value,
  )
}
