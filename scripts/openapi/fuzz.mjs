// @ts-check
/**
 * Runs schemathesis over all operations: `npm run fuzz:openapi`. Pass `-- --seed 7 --max-examples 200` for a different or longer
 * run. schemathesis.toml lists the relaxed checks with reasons.
 */
import { join } from 'node:path'
import { adminToken, run, withPythonTools, withServer } from './tools.mjs'

const bin = withPythonTools()
const config = join(process.cwd(), 'scripts/openapi/schemathesis.toml')
const bounds = ['--seed', '1', '--max-examples', '30']
await withServer((url, directory) => {
  const args = ['run', `${url}/openapi.json`, '--header', `Authorization: Bearer ${adminToken}`]
  run(
    join(bin, 'schemathesis'),
    ['--config-file', config, ...args, '--checks', 'all', ...bounds, ...process.argv.slice(2)],
    directory,
  )
})
