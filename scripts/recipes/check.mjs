// @ts-check
/**
 * Tests the examples that need large packages, which are installed into the temporary directory: `npm run recipes`. The other
 * examples are tested by `npm test`.
 */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expectStatuses, root, run, trialProject, withServer } from '../trial-project.mjs'

/** Creates a project with an example and its packages. Returns its folder. */
function project(/** @type {string} */ name) {
  const example = join(root, 'examples', name)
  const { 'fluxgate-js': _, ...dependencies } = JSON.parse(
    readFileSync(join(example, 'package.json'), 'utf8'),
  ).dependencies
  const folder = trialProject(`recipe-${name}`, dependencies)
  cpSync(example, folder, { recursive: true, filter: (file) => !file.endsWith('package.json') })
  return folder
}

async function checkNext() {
  const folder = project('limit-next')
  // The runtime of the route handlers in the example is Node.
  const edge = join(folder, 'app/api/edge')
  mkdirSync(edge, { recursive: true })
  const login = readFileSync(join(folder, 'app/api/login/route.js'), 'utf8')
  writeFileSync(join(edge, 'route.js'), `export const runtime = 'edge'\n${login}`)
  process.env.NEXT_TELEMETRY_DISABLED = '1'
  const next = join(folder, 'node_modules/.bin/next')
  run(next, ['build'], folder)
  await withServer(
    folder,
    (port) => [next, 'start', '--port', `${port}`, '--hostname', '127.0.0.1'],
    async (url) => {
      const from = (/** @type {string} */ address, /** @type {string} */ path) => () =>
        fetch(`${url}${path}`, {
          method: path === '/' ? 'GET' : 'POST',
          headers: { 'X-Forwarded-For': `198.51.100.9, ${address}` },
        })
      const logins = [200, 200, 200, 429]
      await expectStatuses('limit-next, route handler', logins, from('203.0.113.1', '/api/login'))
      await expectStatuses('limit-next, route handler in the edge runtime', logins, from('203.0.113.1', '/api/edge'))
      const requests = [...Array(60).fill(200), 429]
      await expectStatuses('limit-next, proxy', requests, from('203.0.113.2', '/'))
    },
  )
}

async function checkYoga() {
  const folder = project('limit-graphql-yoga')
  await withServer(
    folder,
    (port) => ['env', `PORT=${port}`, process.execPath, 'index.mjs'],
    async (url) => {
      const send = async (/** @type {string} */ query) => {
        const headers = { 'Content-Type': 'application/json' }
        const response = await fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) })
        return /** @type {any} */ (await response.json())
      }
      const logins = ['a', 'b', 'c', 'd'].map((alias) => `${alias}: login(password: "x")`)
      const { errors } = await send(`mutation { ${logins.join(' ')} }`)
      if (errors?.length !== 1 || errors[0].path.join() !== 'd' || errors[0].extensions.code !== 'RATE_LIMITED')
        throw new Error(`limit-graphql-yoga: unexpected errors ${JSON.stringify(errors)}`)
      const { data } = await send('{ hello }')
      const fields = Array.from({ length: 98 }, (_, i) => `f${i}: hello`)
      const large = await send(`{ ${fields.join(' ')} }`)
      if (data?.hello !== 'Hello.' || large.errors?.[0].extensions.code !== 'RATE_LIMITED')
        throw new Error(`limit-graphql-yoga: unexpected responses ${JSON.stringify([data, large])}`)
      console.log('limit-graphql-yoga: ok')
    },
  )
}

await checkYoga()
await checkNext()
