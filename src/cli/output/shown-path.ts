import { relative, resolve } from 'node:path'

/** A path for display: relative if it is inside the working directory, otherwise absolute. */
export function displayPath(path: string): string {
  const fromHere = relative(process.cwd(), resolve(path))
  return fromHere === '' || fromHere.startsWith('..') ? resolve(path) : fromHere
}
