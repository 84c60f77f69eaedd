import type { LimitScope } from '../../http/place.js'

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

/** Called for a class when it, or one of its methods, is given a limit. */
export function register(owner: Named & object): void {
  const known = (classes.get(owner.name) ?? []).filter((one) => one.deref() !== undefined)
  if (known.every((one) => one.deref() !== owner)) known.push(new WeakRef(owner))
  classes.set(owner.name, known)
}

/** What a limit of this class, or of this method of it, applies to. */
export function scopeOf(owner: Named & object, method: (Named & object) | undefined): LimitScope {
  let found = scopes.get(owner)
  if (found === undefined) {
    register(owner)
    found = { own: { name: owner.name, identity: identityOf(owner) }, methods: new WeakMap() }
    scopes.set(owner, found)
  }
  if (method === undefined) return found.own
  let scope = found.methods.get(method)
  if (scope === undefined) {
    scope = { name: `${owner.name}.${method.name}`, identity: JSON.stringify([found.own.identity, method.name]) }
    found.methods.set(method, scope)
  }
  return scope
}

/** Class name, arguments of `@Controller`, and the index among the classes that have both in common. */
function identityOf(owner: Named & object): string {
  const place = placeOf(owner)
  const alike = (classes.get(owner.name) ?? []).map((one) => one.deref()).filter((one) => one && placeOf(one) === place)
  return JSON.stringify([owner.name, place, alike.indexOf(owner)])
}

/** What `@Controller` has been given. */
function placeOf(owner: object): string {
  const { getMetadata } = Reflect as { getMetadata?: (name: string, target: object) => unknown }
  const given = ['path', 'host', '__version__'].map((name) => getMetadata?.(name, owner))
  return JSON.stringify(given, (_, value) =>
    typeof value === 'symbol' || value instanceof RegExp ? String(value) : value,
  )
}
