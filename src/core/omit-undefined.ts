type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

/** Returns a copy of the object without the members that are undefined. */
export function omitUndefined<T extends object>(values: T): Defined<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Defined<T>
}
