import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** The program that `FLUXGATE_TEST_VALKEY` names, or `valkey-server` on the PATH, if installed. */
export function valkeyBinary(): string | undefined {
  const named = process.env.FLUXGATE_TEST_VALKEY
  if (named) return named
  const places = (process.env.PATH ?? '').split(delimiter).filter((place) => place !== '')
  return places.map((place) => join(place, 'valkey-server')).find(isExecutable)
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}
