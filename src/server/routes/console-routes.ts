import type { ApiParts } from '../parts.js'
import { type Route, route } from '../request/route.js'
import { notFound } from './edit-request.js'

const group = 'Operations'
const page = 'index.html'

const redirect = (path: string, name: string): Route =>
  route({
    method: 'GET',
    path,
    name,
    summary: 'Redirect to the console.',
    group,
    access: 'PUBLIC',
    responses: { 302: { description: 'Redirect to the console.', headers: { Location: 'Path of the console.' } } },
    handle: () => ({ status: 302, headers: { Location: '/console' } }),
  })

/** The web console. Its files contain no data: the page requests data from the API, with the token that the user enters. */
export function consoleRoutes({ console: files }: ApiParts): Route[] {
  const missing = () => notFound('The console has no such file.')
  return [
    redirect('/', 'home'),
    route({
      method: 'GET',
      path: '/console',
      name: 'console',
      summary: 'Show the web console.',
      description:
        'Show the web console. Browsers without a token get the page with status 401; it asks for the token.',
      group,
      access: 'ADMIN',
      responses: { 200: { description: 'The page.', type: 'text/html' } },
      handle({ headers }) {
        const reply = files.reply(page, headers['accept-encoding'])
        if (reply === undefined) throw missing()
        return reply
      },
      signIn: ({ 'accept-encoding': encoding }) => files.reply(page, encoding, 401),
    }),
    redirect('/console/', 'consoleFolder'),
    route({
      method: 'GET',
      path: '/console/:file*',
      name: 'consoleFile',
      summary: 'Get a script, style sheet or image of the web console.',
      group,
      access: 'PUBLIC',
      responses: {
        200: { description: 'The file.', type: 'text/javascript' },
        404: { description: 'The console has no such file.' },
      },
      handle({ params: { file = '' }, headers }) {
        const reply = files.reply(file, headers['accept-encoding'])
        if (reply === undefined) throw missing()
        return reply
      },
    }),
  ]
}
