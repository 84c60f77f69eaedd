// @ts-check
/** Lints /openapi.json with Redocly and Spectral, without exceptions: `npm run lint:openapi`. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run, withNodeTools, withServer } from './tools.mjs'

const tools = withNodeTools()
await withServer((_url, directory) => {
  const document = join(directory, 'openapi.json')
  const bin = join(tools, 'node_modules/.bin')
  run(join(bin, 'redocly'), ['lint', '--extends', 'recommended', '--max-problems', '1000', document])
  const ruleset = join(directory, 'spectral.yaml')
  writeFileSync(ruleset, 'extends: ["spectral:oas"]\n')
  run(join(bin, 'spectral'), ['lint', '--fail-severity', 'hint', '--ruleset', ruleset, document])
})
