/** `fluxgate completion` in real shells. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { commandLine } from './command-line.js'

const { fluxgate, remove } = commandLine()
const directory = mkdtempSync(join(tmpdir(), 'fluxgate-completion-'))
for (const name of ['a file.yaml', 'b.yaml']) writeFileSync(join(directory, name), '')
afterAll(() => {
  remove()
  rmSync(directory, { recursive: true, force: true })
})

const scripts = new Map<string, string>()
const scriptOf = (shell: string): string => {
  const script = scripts.get(shell) ?? fluxgate(['completion', shell]).stdout
  scripts.set(shell, script)
  return script
}

function inBash(line: string): string[] {
  const words = line.split(' ')
  const setup = `COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _fluxgate; printf '%s\\n' "\${COMPREPLY[@]}"`
  const { stdout, stderr } = spawnSync('bash', ['-c', `${scriptOf('bash')}\n${setup}`], {
    encoding: 'utf8',
    cwd: directory,
  })
  expect(stderr).toBe('')
  return stdout.split('\n').filter((word) => word !== '')
}

/** Undefined if fish is not installed. */
function inFish(line: string): string[] | undefined {
  const args = ['--no-config', '-c', `${scriptOf('fish')}\ncomplete -C '${line}'`]
  const { stdout, error } = spawnSync('fish', args, { encoding: 'utf8', cwd: directory })
  if (error !== undefined) return undefined
  return stdout.split('\n').flatMap((one) => (one === '' ? [] : [one.split('\t')[0] as string]))
}

const cases: [line: string, expected: string[]][] = [
  ['fluxgate s', ['start', 'serve', 'simulate']],
  ['fluxgate rules ex', ['export']],
  ['fluxgate bulk o', ['overrides']],
  ['fluxgate overrides s', ['set']],
  ['fluxgate serve --w', ['--workers']],
  ['fluxgate rules apply --dr', ['--dry-run']],
  ['fluxgate doctor --only ', ['server', 'gateway']],
  ['fluxgate completion ', ['bash', 'zsh', 'fish']],
  ['fluxgate start --config b', ['b.yaml']],
  ['fluxgate start --config a', ['a file.yaml']],
  ['fluxgate check --ip ', []],
]

describe('fluxgate completion', () => {
  it.each(cases)('completes "%s" in bash', (line, expected) => {
    const completed = inBash(line).filter((word) => !word.startsWith('--') || line.includes('--'))
    expect(completed).toEqual(expected)
  })

  it('completes the same in fish, if it is installed', () => {
    for (const [line, expected] of cases) {
      const completed = inFish(line)
      if (completed === undefined) return console.info('fish is not installed: its script is not tried.')
      const unescaped = completed.map((word) => word.replaceAll('\\ ', ' '))
      expect(unescaped.sort(), line).toEqual(expected.sort())
    }
  })

  it.each(['bash', 'zsh', 'fish'])('covers every command in %s', (shell) => {
    const commands = [...(fluxgate(['--help']).stdout.split('\nCommands:\n')[1] ?? '').matchAll(/^ {2}([a-z]+)/gm)]
    expect(commands.length).toBeGreaterThan(12)
    for (const [, command = ''] of commands)
      if (command !== 'help') expect(scriptOf(shell)).toMatch(new RegExp(`["']${command}["']`))
  })

  it.each(['zsh', 'fish'])('prints a valid script for %s, if that shell is installed', (shell) => {
    const file = join(directory, `script.${shell}`)
    writeFileSync(file, scriptOf(shell))
    const tried = spawnSync(shell, ['-n', file], { encoding: 'utf8' })
    if (tried.error !== undefined) console.info(`${shell} is not installed: its script is not tried.`)
    else expect(tried.stderr).toBe('')
  })

  it('rejects an unknown shell', () => {
    expect(fluxgate(['completion', 'tcsh']).status).toBe(2)
  })
})
