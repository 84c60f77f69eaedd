/** RFC 7396: what the patch names is replaced, or removed by null; all else stays, in its place. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch
  const merged = new Map<string, unknown>(isObject(target) ? Object.entries(target) : [])
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) merged.delete(name)
    else merged.set(name, mergePatch(merged.get(name), value))
  }
  // Unlike an assignment, this takes `__proto__` for a name like any other.
  return Object.fromEntries(merged)
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
