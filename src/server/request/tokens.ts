import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { ApiProblem } from './api-problem.js'
import type { Access } from './route.js'

export interface TokenOptions {
  readonly adminToken?: string | undefined
  readonly checkToken?: string | undefined
}

/** Who a token belongs to; `none` where none is needed. */
export type TokenName = 'admin' | 'check' | 'none'

/**
 * Who may ask for what. Digests are compared, all bytes of them in the same time whatever they are, so that nothing can be
 * learnt from how long it takes, not even how long the token is.
 */
export class Tokens {
  readonly #admin: Buffer | undefined
  readonly #check: Buffer | undefined

  constructor({ adminToken, checkToken }: TokenOptions) {
    this.#admin = adminToken ? digest(adminToken) : undefined
    this.#check = checkToken ? digest(checkToken) : undefined
  }

  /** Whether everybody is an administrator, who can reach this server at all. */
  get isOpen(): boolean {
    return this.#admin === undefined
  }

  /** Whose token this is, for a route with that access. Throws 401. */
  admit(request: IncomingMessage, access: Access): TokenName {
    if (access === 'PUBLIC') return 'none'
    if (this.#admin === undefined && (access === 'ADMIN' || this.#check === undefined)) return 'none'
    const given = givenToken(request.headers.authorization)
    if (given !== undefined) {
      const seen = digest(given)
      if (this.#admin !== undefined && timingSafeEqual(seen, this.#admin)) return 'admin'
      if (access === 'CHECK' && this.#check !== undefined && timingSafeEqual(seen, this.#check)) return 'check'
    }
    throw new ApiProblem(
      'FLUXGATE_UNAUTHORIZED',
      given === undefined
        ? 'This needs a token: send "Authorization: Bearer <token>".'
        : 'This token does not open this route.',
      { headers: { 'WWW-Authenticate': challengeFor(request) } },
    )
  }
}

/** A page that is opened in a browser has no other way to ask: the password is the token, the user name is free. */
const challengeFor = ({ headers }: IncomingMessage): string =>
  headers.accept?.includes('text/html') ? `${bearer}, Basic realm="FluxGate", charset="UTF-8"` : bearer

const bearer = 'Bearer realm="FluxGate"'

const digest = (token: string): Buffer => hash('sha256', token, 'buffer')

function givenToken(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined
  const [, scheme = '', credentials = ''] = /^(bearer|basic) +([^\s]+) *$/i.exec(authorization) ?? []
  if (scheme === '') return undefined
  if (scheme.toLowerCase() === 'bearer') return credentials
  const pair = Buffer.from(credentials, 'base64').toString('utf8')
  const colon = pair.indexOf(':')
  return colon === -1 ? undefined : pair.slice(colon + 1)
}

/** Sent by a browser on its own, so that the page which asks has to be one of this server. */
export const isAmbient = ({ headers }: IncomingMessage): boolean => !/^bearer /i.test(headers.authorization ?? '')
