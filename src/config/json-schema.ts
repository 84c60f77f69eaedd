/** JSON Schema of fluxgate.yaml, for completion and validation in editors. `scripts/config-schema.mjs` writes it to docs/reference. */

import type { JsonSchema } from '../validation/kind.js'
import type { Setting } from '../validation/setting.js'
import { kebabCase } from '../validation/setting-names.js'
import { settingGroups, settings } from './settings.js'

type Members = Readonly<Record<string, Setting<unknown>>>

/** `meanings` holds the description of each setting, by its path. */
export function configSchema(meanings: ReadonlyMap<string, string>): JsonSchema {
  const sections = Object.entries<Members>(settings)
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'fluxgate.yaml',
    ...objectSchema(sections.map(([section, members]) => [section, sectionSchema(section, members)])),
    definitions: Object.fromEntries(
      sections.flatMap(([section, members]) =>
        Object.entries(members).map(([key, setting]) => {
          const place = `${section}.${key}`
          return [place, settingSchema(setting, meanings.get(place) ?? '')]
        }),
      ),
    ),
  }
}

function sectionSchema(section: string, members: Members): JsonSchema {
  const reference = (key: string): JsonSchema => ({ $ref: `#/definitions/${section}.${key}` })
  const own = Object.keys(members).map((key) => [key, reference(key)] as const)
  const groups = Object.entries(settingGroups[section] ?? {}).map(([name, inner]) => {
    const fields = Object.entries(inner).map(([field, key]) => [field, reference(key)] as const)
    return [name, objectSchema(fields)] as const
  })
  return objectSchema([...own, ...groups])
}

function settingSchema({ kind, defaultValue }: Setting<unknown>, description: string): JsonSchema {
  return {
    description,
    ...(defaultValue !== undefined && { default: defaultValue }),
    anyOf: [kind.schema, placeholder],
  }
}

/** A string with a placeholder may become a value of any type. */
const placeholder = { type: 'string', pattern: '\\$\\{' }

/** Accepts camelCase and kebab-case names. A section may be empty (null). */
function objectSchema(properties: readonly (readonly [string, JsonSchema])[]): JsonSchema {
  const spellings = properties.flatMap(([name, schema]) =>
    [...new Set([name, kebabCase(name)])].map((as) => [as, schema]),
  )
  return { type: ['object', 'null'], properties: Object.fromEntries(spellings), additionalProperties: false }
}
