import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Command } from 'commander'
import { messageOf } from '../../../core/errors.js'
import { exitStatus } from '../../exit-status.js'
import { UsageError } from '../../failure.js'
import { displayPath, paintFor, print, printJson } from '../../output/output.js'
import { configTemplate, rulesTemplate } from './templates.js'

const examples = `
Examples:
  $ fluxgate init
      create fluxgate.yaml and rules.yaml in this directory
  $ fluxgate init limits && fluxgate start --config limits/fluxgate.yaml

Existing files are never overwritten.
Exit status: 0 both files were created, 1 a file existed and was kept, 2 a file could not be written.
`

const files = { 'fluxgate.yaml': configTemplate, 'rules.yaml': rulesTemplate }

export function initCommand(): Command {
  return new Command('init')
    .description('Create a commented fluxgate.yaml and rules.yaml.')
    .argument('[directory]', 'where to create them; default: the current directory')
    .option('--json', 'print { created, kept }: lists of paths')
    .addHelpText('after', examples)
    .action(init)
}

async function init(directory = '.', { json }: { readonly json?: true }): Promise<void> {
  await mkdir(directory, { recursive: true }).catch((error: unknown) => {
    throw notWritable(directory, error)
  })
  const created: string[] = []
  const kept: string[] = []
  for (const [name, text] of Object.entries(files)) {
    const path = join(directory, name)
    const list = (await writeNew(path, text)) ? created : kept
    list.push(displayPath(path))
  }
  process.exitCode = kept.length === 0 ? exitStatus.ok : exitStatus.negative
  if (json) return printJson({ created, kept })
  const paint = paintFor(process.stdout)
  for (const path of created) print(`${paint('green', '✓')} ${path} created`)
  for (const path of kept) print(`${paint('yellow', '!')} ${path} exists and was kept`)
  print('\nNext: `fluxgate doctor` checks the configuration, `fluxgate start` runs it.')
}

/** False if the file exists. The flag makes the check and the creation one step. */
async function writeNew(path: string, text: string): Promise<boolean> {
  try {
    await writeFile(path, text, { flag: 'wx' })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw notWritable(path, error)
  }
}

const notWritable = (path: string, error: unknown): UsageError =>
  new UsageError(`Cannot write ${displayPath(path)}: ${messageOf(error)}. Choose a writable directory.`)
