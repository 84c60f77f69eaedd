// @ts-check
/**
 * Writes the JSON Schema of fluxgate.yaml from the table of settings and the descriptions in docs/reference/configuration.md:
 * `node scripts/config-schema.mjs`, after a build. A test compares the result with the file.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { configSchema } from '../dist/config/json-schema.js'

const page = readFileSync(new URL('../docs/reference/configuration.md', import.meta.url), 'utf8')
const rows = page.matchAll(/^\| `([\w.]+)` \|.*\| (.*?) \|$/gm)
const meanings = new Map([...rows].map(([, place = '', meaning = '']) => [place, meaning]))
const file = new URL('../docs/reference/fluxgate.schema.json', import.meta.url)
writeFileSync(file, `${JSON.stringify(configSchema(meanings), null, 2)}\n`)
