import { relative, resolve } from 'node:path'

/** A path as somebody who works in this directory would write it. */
export function shownPath(path: string): string {
  const fromHere = relative(process.cwd(), resolve(path))
  return fromHere === '' || fromHere.startsWith('..') ? resolve(path) : fromHere
}
