import { existsSync, rmSync } from 'node:fs'
import { copyFile, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../../config/config.js'

/** True if neither a configuration nor rules exist, as in an empty directory. */
export const hasNoFiles = ({ file, rules, areRulesOptional }: Config): boolean =>
  file === undefined && rules.type === 'file' && areRulesOptional && !existsSync(rules.path)

/** Copies the rules of this package to a temporary file, because the API may edit them. The copy is removed at exit. */
export async function copyDemoRules(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'fluxgate-demo-'))
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
  const path = join(directory, 'rules.yaml')
  await copyFile(new URL('../../rules.yaml', import.meta.url), path)
  return path
}
