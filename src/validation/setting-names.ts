/** Conversions between the spellings of setting names. */

/** `waitForRefill.maxWaitTime` → `FLUXGATE_WAIT_FOR_REFILL_MAX_WAIT_TIME` */
export const environmentName = (path: string): string =>
  `FLUXGATE_${path.replaceAll('.', '_').replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')}`.toUpperCase()

/** `max-wait-time` → `maxWaitTime`. Names that are not in kebab-case stay unchanged. */
export const camelCase = (name: string): string =>
  /^[a-z][a-z0-9]*(-[a-z0-9]+)+$/.test(name) ? name.replaceAll(/-(.)/g, (_, char: string) => char.toUpperCase()) : name

/** `maxWaitTime` → `max-wait-time` */
export const kebabCase = (name: string): string => name.replaceAll(/[A-Z]/g, (char) => `-${char.toLowerCase()}`)
