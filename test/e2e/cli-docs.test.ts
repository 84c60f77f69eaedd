/** Compares the pages about the command line with its options and output. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { commandLine, root } from './command-line.js'

const { file, fluxgate, shell, remove } = commandLine()
afterAll(remove)

describe('the documentation of the command line', () => {
  const read = (path: string): string => readFileSync(join(root, 'docs', path), 'utf8')
  const optionsIn = (text: string): string[] => [
    ...new Set([...text.matchAll(/--[a-z][a-z-]*/g)].map(([name]) => name)),
  ]

  const helpTexts = new Map<string, string>()
  function helpOf(command: readonly string[]): string {
    const name = command.join(' ')
    const text = helpTexts.get(name) ?? fluxgate([...command, '--help']).stdout
    helpTexts.set(name, text)
    return text
  }

  /** The commands that the help lists. */
  function commands(path: readonly string[] = []): string[][] {
    const listed = helpOf(path).split('\nCommands:\n')[1] ?? ''
    const names = [...listed.matchAll(/^ {2}([a-z]+)/gm)]
      .map(([, name]) => name as string)
      .filter((name) => name !== 'help')
    return names.flatMap((name) => [[...path, name], ...commands([...path, name])])
  }

  it('has a section for every command with exactly its options', () => {
    const reference = read('reference/cli.md')
    const found = commands()
    expect(found.length).toBeGreaterThan(3)
    for (const command of found) {
      const name = `fluxgate ${command.join(' ')}`
      const section = reference.split(/^##+ /m).find((text) => text.startsWith(`${name}\n`)) ?? ''
      expect(section, `a section "${name}"`).not.toBe('')
      const rows = section.split('\n').filter((line) => line.startsWith('| `-'))
      const documented = rows.flatMap((row) => optionsIn(row.split(' | ')[0] as string))
      const offered = [...helpOf(command).matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm)].map(([, option]) => option)
      expect(documented.sort(), name).toEqual(offered.filter((option) => option !== '--help').sort())
    }
    const titles = [...reference.matchAll(/^##+ fluxgate (.+)$/gm)].map(([, title]) => title)
    expect(titles.sort()).toEqual(found.map((command) => command.join(' ')).sort())
  })

  it.each(['guide/simulate.md', 'guide/bulk.md', 'reference/cli.md'])(
    'shows the actual output of the commands in %s',
    (path) => {
      const page = read(path)
      for (const [, name, text] of page.matchAll(/^```\w+ (\S+)\n([\s\S]*?)^```$/gm))
        writeFileSync(file(name as string), text as string)
      const shown = [...page.matchAll(/^```console\n\$ (.+)\n([\s\S]*?)^```$/gm)]
      expect(shown.length).toBeGreaterThan(0)
      for (const [, command = '', output = ''] of shown) {
        const { stdout, stderr } = shell(command)
        expect(`${stdout}${stderr}`.trimEnd(), command).toBe(output.trimEnd())
      }
    },
  )
})
