// @ts-check
/** Generates clients in TypeScript and Python and tests both against a server: `npm run clients:openapi`. */
import { copyFileSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { adminToken, run, withNodeTools, withPythonTools, withServer } from './tools.mjs'

const nodeTools = withNodeTools()
const python = withPythonTools()
const here = join(process.cwd(), 'scripts/openapi')

await withServer((url, directory) => {
  const bin = join(nodeTools, 'node_modules/.bin')
  const typed = join(directory, 'typescript')
  mkdirSync(typed)
  symlinkSync(join(nodeTools, 'node_modules'), join(typed, 'node_modules'))
  symlinkSync(join(process.cwd(), 'node_modules/@types'), join(typed, 'types'))
  writeFileSync(join(typed, 'package.json'), '{ "type": "module" }')
  copyFileSync(join(here, 'client.ts'), join(typed, 'client.ts'))
  run(join(bin, 'openapi-typescript'), [join(directory, 'openapi.json'), '-o', join(typed, 'api.ts')])
  const strict = ['--strict', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess', '--noImplicitReturns']
  const target = ['--target', 'es2022', '--module', 'nodenext', '--typeRoots', 'types', '--types', 'node']
  run(join(bin, 'tsc'), [...strict, ...target, 'client.ts'], typed)
  run(process.execPath, ['client.js', url, adminToken], typed)

  const output = join(directory, 'fluxgate_client')
  rmSync(output, { recursive: true, force: true })
  process.env.PATH = `${python}:${process.env.PATH}`
  const source = ['--path', join(directory, 'openapi.json')]
  run('openapi-python-client', ['generate', ...source, '--output-path', output, '--meta', 'none', '--fail-on-warning'])
  copyFileSync(join(here, 'client.py'), join(directory, 'client.py'))
  run(join(python, 'python'), ['client.py', url, adminToken], directory)
})
