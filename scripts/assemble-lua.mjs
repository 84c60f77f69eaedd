// @ts-check
/**
 * Assembles the Lua scripts for Redis into checked-in modules, so that nothing is read from disk at run time:
 * `node scripts/assemble-lua.mjs`. A test compares the result with the modules.
 */
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The scripts of each module, relative to its folder. */
const modules = {
  'src/rules/redis/lua/scripts.generated.ts': ['commit', 'find', 'read', 'stage', 'swap'],
  'src/stores/redis/lua/consume.generated.ts': ['consume'],
  'src/stores/redis/bans/lua/scripts.generated.ts': ['set', 'lift', 'read', 'add'],
  'src/stores/redis/reservations/cluster/lua/scripts.generated.ts': ['coordinator'],
  'src/redis/lock/lua/scripts.generated.ts': [
    'acquire',
    'extend',
    'release',
    'unlock',
    'semaphore/acquire',
    'semaphore/extend',
    'semaphore/release',
  ],
  'src/redis/search-index/lua/scripts.generated.ts': ['edit', 'page', 'suggest', 'read', 'turn'],
  'src/telemetry/statistics/lua/scripts.generated.ts': ['flush', 'read'],
}
const root = new URL('../', import.meta.url)

/**
 * Returns the lines of a file without comments and indentation. Directives insert other files:
 *
 * - `--@include <files>` inserts their lines.
 * - `--@make <variable> <files>` assigns the result of a function with their lines, called in place, so that their definitions
 *   cost nothing before that point.
 * - `--@twins <kind> <variable>` names the variables that `--@twin` uses.
 * - `--@twin <files>` is `--@make` for `<variable>`, executed only if `<kind>` is the number of this directive in the file.
 *
 * @returns {string[]}
 */
function code(/** @type {URL} */ file) {
  let twins = 0
  let [kind = '', target = ''] = ['', '']
  /** @type {string[]} */
  const lines = []
  for (const text of readFileSync(file, 'utf8').split('\n')) {
    const line = text.trim()
    const [, word, rest = ''] = /^--@(\w+) (.+)$/.exec(line) ?? []
    const names = rest.split(' ')
    const from = (/** @type {string[]} */ paths) => paths.flatMap((path) => code(new URL(path, file)))
    if (word === 'include') lines.push(...from(names))
    else if (word === 'make') lines.push(`${names[0]} = (function()`, ...from(names.slice(1)), 'end)()')
    else if (word === 'twins') [kind = '', target = ''] = names
    else if (word === 'twin')
      lines.push(`if ${kind} == ${++twins} then ${target} = (function()`, ...from(names), 'end)() end')
    else if (line !== '' && !line.startsWith('--')) lines.push(line)
  }
  return lines
}

/** Returns the path and the expected text of each module. */
export function assemble() {
  return Object.entries(modules).map(([path, names]) => {
    const module = new URL(path, root)
    const files = names.map((name) => `${name}.lua`)
    const header = `/** Generated from ${files.join(', ')} by scripts/assemble-lua.mjs; do not edit. */\n`
    return { path, text: header + names.map((name) => constants(name, new URL(`${name}.lua`, module))).join('\n') }
  })
}

function constants(/** @type {string} */ name, /** @type {URL} */ file) {
  const script = code(file).join('\n')
  const sha = createHash('sha1').update(script).digest('hex')
  const constant = name.replace(/\/(\w)/g, (_, letter) => letter.toUpperCase())
  return `export const ${constant}Script = {\n  sha: '${sha}',\n  source: \`${script}\`,\n}\n`
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  for (const { path, text } of assemble()) writeFileSync(new URL(path, root), text)
