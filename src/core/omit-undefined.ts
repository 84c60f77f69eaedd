type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

/** The members that have a value: what is given as undefined is not given. */
export function given<T extends object>(values: T): Given<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Given<T>
}
