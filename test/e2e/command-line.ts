import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
const program = join(root, 'dist', 'command', 'main.js')

/** Removes environment variables for colors and stack traces, which would change the output. */
const { NO_COLOR: _, DEBUG: __, ...environment } = process.env

/** The built program in an empty directory of its own. */
export function commandLine() {
  const directory = mkdtempSync(join(tmpdir(), 'fluxgate-cli-'))
  const file = (name: string): string => join(directory, name)
  mkdirSync(file('bin'))
  symlinkSync(program, file('bin/fluxgate'))
  const common = { cwd: directory, encoding: 'utf8', maxBuffer: 2 ** 28 } as const

  return {
    file,
    fluxgate(args: readonly string[], { input = '', env = {} }: { input?: string; env?: NodeJS.ProcessEnv } = {}) {
      const options = { ...common, input, env: { ...environment, ...env } }
      const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], options)
      return { status, stdout, stderr }
    },
    /** In a shell, where `fluxgate` is on the path. */
    shell(command: string) {
      const env = { ...environment, PATH: `${file('bin')}${delimiter}${process.env.PATH}` }
      return spawnSync('bash', ['-c', command], { ...common, env })
    },
    remove: () => rmSync(directory, { recursive: true, force: true }),
  }
}
