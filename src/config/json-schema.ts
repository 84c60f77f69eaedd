/** JSON Schema of fluxgate.yaml, so that editors complete and check it. `scripts/config-schema.mjs` writes it to docs/reference. */

import type { Setting } from '../validation/setting.js'
import type { JsonSchema } from '../validation/setting-kinds.js'
import { kebabCase } from '../validation/setting-names.js'
import { settingGroups, settings } from './settings.js'

type Members = Readonly<Record<string, Setting<unknown>>>

/** `meanings`: what each setting is for, by its place. */
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

function settingSchema({ kind, standard }: Setting<unknown>, description: string): JsonSchema {
  return { description, ...(standard !== undefined && { default: standard }), anyOf: [kind.schema, placeholder] }
}

/** Text with `${NAME}` in it may become anything. */
const placeholder = { type: 'string', pattern: '\\$\\{' }

/** Names in both spellings. What is left empty has nothing in it. */
function objectSchema(properties: readonly (readonly [string, JsonSchema])[]): JsonSchema {
  const spellings = properties.flatMap(([name, schema]) =>
    [...new Set([name, kebabCase(name)])].map((as) => [as, schema]),
  )
  return { type: ['object', 'null'], properties: Object.fromEntries(spellings), additionalProperties: false }
}
