// @ts-check
/**
 * Puts consume.lua and what it includes into one checked-in module, so that nothing reads the disk at run time:
 * `node scripts/assemble-lua.mjs`. A test compares the result with the module.
 */
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const frame = new URL('../src/stores/consume.lua', import.meta.url)
const module = new URL('../src/stores/consume.generated.ts', import.meta.url)

/**
 * A file's lines that do something, without comments and indentation. Lines that begin with `--@` bring in other files as
 * a function that is called at once, so that what they define costs nothing before: `make` puts its result into a variable,
 * `twin` into the one that `twins` has named, if it is its turn by number.
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
    if (word === 'make') lines.push(`${names[0]} = (function()`, ...from(names.slice(1)), 'end)()')
    else if (word === 'twins') [kind = '', target = ''] = names
    else if (word === 'twin')
      lines.push(`if ${kind} == ${++twins} then ${target} = (function()`, ...from(names), 'end)() end')
    else if (line !== '' && !line.startsWith('--')) lines.push(line)
  }
  return lines
}

export function assemble() {
  const script = code(frame).join('\n')
  const sha = createHash('sha1').update(script).digest('hex')
  return `/** Made from consume.lua by scripts/assemble-lua.mjs; edit that one. */\nexport const consumeSha = '${sha}'\n\nexport const consumeScript = \`${script}\`\n`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(module, assemble())
