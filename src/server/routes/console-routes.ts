import type { ApiParts } from '../api-parts.js'
import { type Route, route } from '../request/route.js'
import { pageHeaders, statusPage, style, styleHeaders } from '../status-page.js'

const group = 'Operations'

/** For people, in a browser. */
export function consoleRoutes(parts: ApiParts): Route[] {
  return [
    route({
      method: 'GET',
      path: '/',
      name: 'home',
      summary: 'Leads to the console.',
      group,
      access: 'PUBLIC',
      responses: { 302: { description: 'There it is.', headers: { Location: 'The console.' } } },
      handle: () => ({ status: 302, headers: { Location: '/console' } }),
    }),
    route({
      method: 'GET',
      path: '/console',
      name: 'console',
      summary: 'What runs here, as a page.',
      group,
      access: 'ADMIN',
      responses: { 200: { description: 'A page that renews itself.', type: 'text/html' } },
      handle: async () => ({ status: 200, headers: pageHeaders, text: await statusPage(parts) }),
    }),
    route({
      method: 'GET',
      path: '/console/status.css',
      name: 'consoleStyle',
      summary: 'How the page looks.',
      group,
      access: 'PUBLIC',
      responses: { 200: { description: 'A style sheet.', type: 'text/css' } },
      handle: () => ({ status: 200, headers: styleHeaders, text: style }),
    }),
  ]
}
