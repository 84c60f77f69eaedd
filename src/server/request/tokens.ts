import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { ApiProblem } from './api-problem.js'
import type { Access } from './route.js'

export interface TokenOptions {
  readonly adminToken?: string | undefined
  readonly checkToken?: string | undefined
}

/** The token that a request used; `none` if the route needs none. */
export type TokenName = 'admin' | 'check' | 'none'

/** Authorizes requests. Compares SHA-256 digests in constant time, so that timing reveals neither the token nor its length. */
export class Tokens {
  readonly #admin: Buffer | undefined
  readonly #check: Buffer | undefined

  constructor({ adminToken, checkToken }: TokenOptions) {
    this.#admin = adminToken ? digest(adminToken) : undefined
    this.#check = checkToken ? digest(checkToken) : undefined
  }

  /** True if there is no admin token, so that every client that reaches the server is an administrator. */
  get isOpen(): boolean {
    return this.#admin === undefined
  }

  /** Authorizes a request for a route with this access, and returns the token that it used. Throws 401. */
  admit(request: IncomingMessage, access: Access): TokenName {
    const { authorization } = request.headers
    const name = this.find(authorization, access)
    if (name !== undefined) return name
    const token = tokenOf(authorization)
    throw new ApiProblem(
      'FLUXGATE_UNAUTHORIZED',
      token === undefined
        ? 'This route requires a token. Send "Authorization: Bearer <token>".'
        : 'The token is not valid for this route.',
      { headers: { 'WWW-Authenticate': challengeFor(request) } },
    )
  }

  /** The token that authorizes this access; undefined if the credentials are missing or invalid. */
  find(authorization: string | undefined, access: Access): TokenName | undefined {
    if (access === 'PUBLIC') return 'none'
    if (this.#admin === undefined && (access === 'ADMIN' || this.#check === undefined)) return 'none'
    const token = tokenOf(authorization)
    if (token === undefined) return undefined
    const seen = digest(token)
    if (this.#admin !== undefined && timingSafeEqual(seen, this.#admin)) return 'admin'
    return access === 'CHECK' && this.#check !== undefined && timingSafeEqual(seen, this.#check) ? 'check' : undefined
  }
}

/** Browsers can prompt only for Basic credentials. The password is the token; the user name is ignored. */
const challengeFor = ({ headers }: IncomingMessage): string =>
  headers.accept?.includes('text/html') ? `${bearer}, Basic realm="FluxGate", charset="UTF-8"` : bearer

export const bearer = 'Bearer realm="FluxGate"'

const digest = (token: string): Buffer => hash('sha256', token, 'buffer')

function tokenOf(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined
  const [, scheme = '', credentials = ''] = /^(bearer|basic) +([^\s]+) *$/i.exec(authorization) ?? []
  if (scheme === '') return undefined
  if (scheme.toLowerCase() === 'bearer') return credentials
  const pair = Buffer.from(credentials, 'base64').toString('utf8')
  const colon = pair.indexOf(':')
  return colon === -1 ? undefined : pair.slice(colon + 1)
}

/** True unless the request carries a Bearer token: a browser may have attached its credentials by itself. */
export const isAmbient = ({ headers }: IncomingMessage): boolean => !/^bearer /i.test(headers.authorization ?? '')
