import type { Draw } from '../draw.js'

/** The path that is limited, with a character that URLs may escape. */
export const protectedPath = '/api/@me/login'

/** How else the same resource is spelled, by hand. */
export const fixedSpellings: readonly string[] = [
  protectedPath,
  '/API/@ME/LOGIN',
  '/api/%40me/login',
  '/api/@me/%6cogin',
  '/api/@me/%6Cogin',
  '/api/@me/%4Cogin',
  '/api/%2540me/login',
  '/api/@me/login/',
  '/api/@me/login//',
  '//api/@me/login',
  '/api//@me///login',
  '/api/./@me/login',
  '/api/x/../@me/login',
  '/api/@me/login/.',
  '/api/@me/login/x/..',
  '/api/%2e/@me/login',
  '/api/x/%2E%2e/@me/login',
  '/api/@me/x/.%2e/login',
  '/../api/@me/login',
  '\\api\\@me\\login',
  '/api\\@me\\login',
  '/api/x\\..\\@me\\login',
  '/api/@me%5Clogin',
  '/api/@me%2Flogin',
  '/api%2f@me%2flogin',
  '/api/x%2f..%2f@me/login',
  '/api/@me/login;a=b',
  '/api;a=b/@me/login',
  '/api/@me/login?x=/api',
  '/api/@me/login?',
  '/api/@me/login%3Fx',
  '/api/@me/login%23x',
  '/api/@me/login%00',
  '/api/@me/login%20',
  '/api/@me/login%09',
  '//host/api/@me/login',
  '//host/../api/@me/login',
  '///api/@me/login',
  '/\\host/api/@me/login',
  'http://host/api/@me/login',
  'http://host//api/@me/login',
  'HTTP://host:80/api/x/../@me/login/',
  'http://host\\api\\@me\\login',
  'http:///host/api/@me/login',
  'http:////host/api/@me/login',
  'https:///host/api/@me/login',
  'http://\\host\\api/@me/login',
  'http://user@host/api/@me/login',
  '/%61%70%69/%40%6d%65/%6c%6f%67%69%6e',
  '/%2fapi/@me/login',
  '/api/@me/.login/../login',
  '/api/@me/login/%2e%2e/login',
]

const alterations: readonly ((path: string, draw: Draw) => string)[] = [
  (path, draw) =>
    at(path, draw, /[a-z]/i, (letter) => (draw.chance(0.5) ? letter.toUpperCase() : letter.toLowerCase())),
  (path, draw) => at(path, draw, /[a-z@]/i, (letter) => escaped(letter, draw)),
  (path, draw) =>
    at(path, draw, /\//, () => draw.pick(['//', '/./', '/x/../', '/%2e/', '/x/%2e%2E/', '/x//..//', '/.//'])),
  (path, draw) => at(path, draw, /\//, () => draw.pick(['\\', '%5C', '%2F', '%5c', '%2f', '/\\', '\\/'])),
  (path, draw) => path + draw.pick(['/', '//', '/.', '/x/..', ';a', '?a=b', '?', '\\', '/%2e', ';/', '%20', '%00']),
  (path, draw) => draw.pick(['//host', '/\\', '/', '//', '/..', 'http://host', 'http://host/', '\\', '/x/..']) + path,
]

/** Replaces one random character of a kind. */
function at(path: string, draw: Draw, kind: RegExp, replace: (found: string) => string): string {
  const places = [...path].flatMap((letter, index) => (kind.test(letter) ? [index] : []))
  if (places.length === 0) return path
  const place = draw.pick(places)
  return path.slice(0, place) + replace(path[place] as string) + path.slice(place + 1)
}

function escaped(letter: string, draw: Draw): string {
  const code = letter.charCodeAt(0).toString(16)
  return `%${draw.chance(0.5) ? code.toUpperCase() : code}`
}

export function randomSpelling(draw: Draw): string {
  let path = protectedPath
  for (let count = 1 + draw.int(4); count > 0; count--) path = draw.pick(alterations)(path, draw)
  return path
}
