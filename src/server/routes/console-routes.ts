import type { ApiParts } from '../parts.js'
import { type Route, route } from '../request/route.js'
import { pageHeaders, statusPage, style, styleHeaders } from '../status-page.js'

const group = 'Operations'

/** Pages for a browser. */
export function consoleRoutes(parts: ApiParts): Route[] {
  return [
    route({
      method: 'GET',
      path: '/',
      name: 'home',
      summary: 'Redirect to the console.',
      group,
      access: 'PUBLIC',
      responses: { 302: { description: 'Redirect to the console.', headers: { Location: 'Path of the console.' } } },
      handle: () => ({ status: 302, headers: { Location: '/console' } }),
    }),
    route({
      method: 'GET',
      path: '/console',
      name: 'console',
      summary: 'Show the status page.',
      group,
      access: 'ADMIN',
      responses: { 200: { description: 'The status page. It refreshes itself.', type: 'text/html' } },
      handle: async () => ({ status: 200, headers: pageHeaders, text: await statusPage(parts) }),
    }),
    route({
      method: 'GET',
      path: '/console/status.css',
      name: 'consoleStyle',
      summary: 'Get the style sheet of the status page.',
      group,
      access: 'PUBLIC',
      responses: { 200: { description: 'The style sheet.', type: 'text/css' } },
      handle: () => ({ status: 200, headers: styleHeaders, text: style }),
    }),
  ]
}
