// @ts-check
/**
 * Puts consume.lua and what it includes into one checked-in module, so that nothing reads the disk at run time:
 * `node scripts/assemble-lua.mjs`. A test compares the result with the module.
 */
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const frame = new URL('../src/stores/consume.lua', import.meta.url)
const module = new URL('../src/stores/consume-script.ts', import.meta.url)

/** The lines that do something, without comments and indentation. */
const code = (/** @type {URL} */ file) =>
  readFileSync(file, 'utf8')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && (!line.startsWith('--') || line.startsWith('--@')))

export function assemble() {
  let twins = 0
  const lines = code(frame).flatMap((line) => {
    const [, word, paths = ''] = /^--@(include|twin) (.+)$/.exec(line) ?? []
    if (word === undefined) return [line]
    const included = paths.split(' ').flatMap((path) => code(new URL(path, frame)))
    return word === 'include' ? included : [`twins[${++twins}] = function()`, ...included, 'end']
  })
  const script = lines.join('\n')
  const sha = createHash('sha1').update(script).digest('hex')
  return `/** Made from consume.lua by scripts/assemble-lua.mjs; edit that one. */\nexport const consumeSha = '${sha}'\n\nexport const consumeScript = \`${script}\`\n`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(module, assemble())
