import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { apiRoutes } from './api-routes.js'
import { errorStatus, requestProblems } from './request/api-problem.js'

const reference = readFileSync(new URL('../../docs/reference/http-api.md', import.meta.url), 'utf8')
const rows = [...reference.matchAll(/^\| `(.+?)`(.*?) \| (.+?) \|/gm)]

describe('HTTP API reference', () => {
  it('lists exactly the existing routes with their access', () => {
    const listed = rows
      .filter(([, first = '']) => first.includes(' /'))
      .map(([, route, , access]) => `${route} ${access}`)
    const names = { PUBLIC: 'open', CHECK: 'check', ADMIN: 'admin' }
    const routes = apiRoutes({ gate: {} } as never, {} as never).map(
      ({ method, path, access }) => `${method} ${path.replace('*', '')} ${names[access]}`,
    )
    expect(listed.sort()).toEqual(routes.sort())
  })

  it('lists exactly the existing problem codes with their status', () => {
    const listed = rows
      .filter(([, first = '']) => first in requestProblems)
      .map(([, code, , status]) => [code, Number(status)])
    expect(Object.fromEntries(listed)).toEqual(
      Object.fromEntries(Object.entries(requestProblems).map(([code, [status]]) => [code, status])),
    )
  })

  it('lists the correct status of every library error', () => {
    const [, table = ''] = reference.split('Errors of the library')
    const named = [...table.matchAll(/^\| (`FLUXGATE.+?) \| (\d+) \|$/gm)].flatMap(([, codes = '', status]) =>
      [...codes.matchAll(/`(FLUXGATE_\w+)`/g)].map(([, code]) => [code, Number(status)] as const),
    )
    const others = named.filter(([, status]) => status !== 503)
    expect(Object.fromEntries(others)).toEqual(errorStatus)
  })
})
