/** Where the errors of servers and clients become those of FluxGate. */
import { FluxGateError, messageOf } from '../../core/errors.js'

/** The server does not know a script by its digest: after a restart, a failover or SCRIPT FLUSH. */
export const isNoScript = (error: unknown): boolean => error instanceof Error && error.message.startsWith('NOSCRIPT')

/**
 * A slot is being moved and keys of one call are on both sides, between which ioredis then goes to and fro. Nothing was
 * done; calls about fewer keys may succeed.
 */
export const isSplit = (error: unknown): boolean =>
  error instanceof Error && /^TRYAGAIN\b|redirections\. Last error: \w+: (TRYAGAIN|MOVED|ASK)\b/.test(error.message)

/** There was no connection to send a command on. */
export class NotConnectedError extends Error {
  override readonly name = 'NotConnectedError'
}

/** The socket was closed before the command could be written to it, so the server has not seen it. */
export const isUnwritten = (error: unknown): boolean =>
  error instanceof Error && error.message.startsWith("Stream isn't writeable")

/** Replies with which a server rejects a command before it executes any of it. */
const rejections = /^(LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|READONLY)\b/

/** `what` completes "failed to …", said of `who`. What waiting cannot mend has a code of its own. */
export function wrapRedisError(error: unknown, what: string, who = 'The bucket store'): FluxGateError {
  if (error instanceof NotConnectedError || isUnwritten(error)) return unreachable(error, `${who} failed to ${what}`)
  if (error instanceof FluxGateError) return error
  if (isSplit(error))
    return new FluxGateError('FLUXGATE_BUCKET_MOVING', `${who} could not ${what}: a slot is being moved.`, {
      cause: withoutCommand(error),
    })
  const { reason, advice } = explain(error)
  const message = `${who} failed to ${what}: ${reason}`
  return advice === undefined
    ? new FluxGateError('FLUXGATE_STORE_FAILED', message, {
        cause: withoutCommand(error),
        isUnexecuted: rejections.test(messageOf(error)),
      })
    : new FluxGateError('FLUXGATE_STORE_MISCONFIGURED', `${message}. ${advice}`, { cause: withoutCommand(error) })
}

const unreachable = (error: unknown, failure: string): FluxGateError =>
  new FluxGateError('FLUXGATE_STORE_UNREACHABLE', `${failure}: ${reasonOf(error)}`, { cause: withoutCommand(error) })

/** Whether it stays as it is until somebody changes the configuration, here or on the server. */
export const isMisconfigured = (error: unknown): boolean =>
  error instanceof FluxGateError ? error.code === 'FLUXGATE_STORE_MISCONFIGURED' : explain(error).advice !== undefined

/** What happened, in words about the server; nothing of what was sent to it. */
export const reasonOf = (error: unknown): string => explain(error).reason

interface Explanation {
  readonly reason: string
  /** What to do about it, if it is a matter of configuration. */
  readonly advice?: string
}

const credentials =
  'Give the password, and the user if there is one: redis://user:password@host, or username and password.'

/** How replies begin, and what to do. */
const configurationReplies: readonly (readonly [RegExp, string])[] = [
  [/^(NOAUTH|WRONGPASS)\b|^ERR (invalid password|AUTH\b|Client sent AUTH)|^ERR operation not permitted/i, credentials],
  [/^DENIED\b/, 'Give the server a password, or tell it to accept clients from other machines.'],
  [/^NOPERM\b/, 'Allow the ACL user the commands and the keys that FluxGate uses.'],
  [
    /^ERR (DB index|invalid DB|SELECT)/i,
    'Name a database that the server has, such as 0; a cluster has only that one.',
  ],
  [/^ERR This instance has cluster support disabled/, 'Give its address as uri instead of clusterNodes.'],
  [/^MOVED\b/, 'The server is part of a cluster: use clusterNodes, or a client for clusters.'],
  [/^the server does not speak TLS$/, 'Use redis:// instead of rediss://, leave out tls, or enable TLS on the server.'],
  [/^the server speaks TLS only$/, 'Use rediss:// instead of redis://, or set tls.'],
  [/^ERR No such master with that name/i, 'Give the name that the sentinels know the primary by.'],
]

const tlsAdvice =
  'Use rediss:// or tls only with a server that speaks TLS, and name authorities of your own in NODE_EXTRA_CA_CERTS.'
const isTlsCode = (code: string): boolean =>
  /^(ERR_SSL|ERR_TLS|CERT_|EPROTO|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_(GET|VERIFY)|HOSTNAME_MISMATCH)/.test(code)

/** What clients say when there is no connection, in words about the server. */
const clientSentences: readonly (readonly [RegExp, string])[] = [
  [/^Reached the max retries per request/, 'the connection was lost before the reply came'],
  [/^Stream isn't writeable/, 'there is no connection'],
  [/^Connection is closed\.?$/, 'the connection is closed'],
  [/^Socket timeout/, 'the server does not answer'],
]

function explain(error: unknown): Explanation {
  const { message, code } = textOf(error)
  if (isTlsCode(code)) return { reason: `no TLS connection (${code})`, advice: tlsAdvice }
  const advice = configurationReplies.find(([pattern]) => pattern.test(message))?.[1]
  if (advice !== undefined) return { reason: message.replace(/\.$/, ''), advice }
  return { reason: clientSentences.find(([pattern]) => pattern.test(message))?.[1] ?? message }
}

function textOf(error: unknown): { message: string; code: string } {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  // A name with several addresses fails with one error for each of them, and no words of its own.
  if (error instanceof AggregateError && error.errors.length > 0) return { ...textOf(error.errors[0]), code }
  // What a server does not know it repeats, and arguments hold identities of clients.
  const message = messageOf(error).replace(/,? with args beginning with:.*/s, '')
  return { message, code }
}

/** ioredis keeps the arguments of a command in its error: a password, or whom a request came from. */
export function withoutCommand(error: unknown): unknown {
  if (error instanceof Error && 'command' in error) delete error.command
  return error
}
