// @ts-check
/** Runs tests that load the packed package in Jest, configured as in docs/guide/edge.md. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, run, trialProject } from '../trial-project.mjs'

const body = `
  const limiter = createLimiter({ capacity: 1, window: '1m' })
  expect((await limiter.consume('ann')).allowed).toBe(true)
  expect((await limiter.consume('ann')).allowed).toBe(false)
`
const imported = `test('limits', async () => { const { createLimiter } = await import('fluxgate-js')${body}})`
const required = `test('limits', async () => { const { createLimiter } = require('fluxgate-js')${body}})`
// The entry of Nest refers to its own place with `import.meta`.
const nest = `test('loads', () => expect(require('fluxgate-js/nest').RateLimitModule).toBeDefined())`
const esModule = `import { createLimiter } from 'fluxgate-js'\ntest('limits', async () => {${body}})`

export function checkJest() {
  const babel = {
    '@babel/core': '^7.29.13',
    '@babel/plugin-transform-modules-commonjs': '^7.28.6',
    'babel-plugin-transform-import-meta': '^2.3.3',
  }
  const folder = trialProject('jest', { jest: '^30.2.0', ...babel })
  // Babel otherwise looks for its configuration in the folders above.
  writeFileSync(join(folder, 'babel.config.json'), '{}')
  const jest = (/** @type {string} */ test, /** @type {string} */ source, /** @type {object} */ config, flags = '') => {
    writeFileSync(join(folder, test), source)
    writeFileSync(join(folder, 'jest.json'), JSON.stringify({ ...config, testMatch: [`**/${test}`] }))
    run(
      'env',
      [`NODE_OPTIONS=${flags}`, process.execPath, 'node_modules/jest/bin/jest.js', '--config', 'jest.json'],
      folder,
    )
    console.log(`Jest, ${test}${flags && ` with ${flags}`}: ok`)
  }
  const flag = '--experimental-vm-modules'
  jest('module.test.mjs', esModule, {}, flag)
  jest('import.test.cjs', imported, {}, flag)
  jest('require.test.cjs', required, documentedConfig())
  jest('nest.test.cjs', nest, documentedConfig())
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > 24 || (major === 24 && minor >= 9)) jest('require.test.cjs', required, {}, flag)
}

/** The configuration on the page. */
function documentedConfig() {
  const page = readFileSync(join(root, 'docs/guide/edge.md'), 'utf8')
  const [, json = ''] = page.match(/```json\n(\{\s+"transform"[\s\S]*?)```/) ?? []
  return JSON.parse(json)
}
