/** Converts errors of Redis servers and client libraries to `FluxGateError`. */
import { FluxGateError, messageOf } from '../../core/errors.js'

/** True if the server does not have the script, such as after a restart, a failover or SCRIPT FLUSH. */
export const isNoScript = (error: unknown): boolean => error instanceof Error && error.message.startsWith('NOSCRIPT')

/**
 * True if a slot is being migrated and the keys of one call are on both nodes, so that ioredis is redirected back and
 * forth. The command was not executed; a call with fewer keys may succeed.
 */
export const isSplit = (error: unknown): boolean =>
  error instanceof Error && /^TRYAGAIN\b|redirections\. Last error: \w+: (TRYAGAIN|MOVED|ASK)\b/.test(error.message)

/** There was no connection, so the command was not sent. */
export class NotConnectedError extends Error {
  override readonly name = 'NotConnectedError'
}

/** True if the socket was closed before the command was written, so the server never received it. */
export const isUnwritten = (error: unknown): boolean =>
  error instanceof Error && error.message.startsWith("Stream isn't writeable")

/** Replies with which a server rejects a command before it executes any of it. */
const rejections = /^(LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|READONLY)\b/

/**
 * Wraps an error of a Redis call. The message is "`subject` failed to `operation`: …". Errors that only a configuration change can
 * fix have the code `FLUXGATE_STORE_MISCONFIGURED`.
 */
export function wrapRedisError(error: unknown, operation: string, subject = 'The bucket store'): FluxGateError {
  if (error instanceof NotConnectedError || isUnwritten(error))
    return unreachable(error, `${subject} failed to ${operation}`)
  if (error instanceof FluxGateError) return error
  if (isSplit(error))
    return new FluxGateError(
      'FLUXGATE_BUCKET_MOVING',
      `${subject} failed to ${operation}: a slot is being migrated. Try again.`,
      {
        cause: withoutCommand(error),
      },
    )
  const { reason, advice } = explain(error)
  const message = `${subject} failed to ${operation}: ${reason}`
  return advice === undefined
    ? new FluxGateError('FLUXGATE_STORE_FAILED', message, {
        cause: withoutCommand(error),
        isUnexecuted: rejections.test(messageOf(error)),
      })
    : new FluxGateError('FLUXGATE_STORE_MISCONFIGURED', `${message}. ${advice}`, { cause: withoutCommand(error) })
}

const unreachable = (error: unknown, failure: string): FluxGateError =>
  new FluxGateError('FLUXGATE_STORE_UNREACHABLE', `${failure}: ${reasonOf(error)}`, { cause: withoutCommand(error) })

/** True if only a configuration change, here or on the server, can fix the error. */
export const isMisconfigured = (error: unknown): boolean =>
  error instanceof FluxGateError ? error.code === 'FLUXGATE_STORE_MISCONFIGURED' : explain(error).advice !== undefined

/** Describes the error without the command and its arguments. */
export const reasonOf = (error: unknown): string => explain(error).reason

interface Explanation {
  readonly reason: string
  /** How to fix the configuration. Only set for misconfigurations. */
  readonly advice?: string
}

const credentials =
  'Set the password, and the username if the server requires one: redis://user:password@host, or username and password.'

/** Patterns of error replies and how to fix each. */
const configurationReplies: readonly (readonly [RegExp, string])[] = [
  [/^(NOAUTH|WRONGPASS)\b|^ERR (invalid password|AUTH\b|Client sent AUTH)|^ERR operation not permitted/i, credentials],
  [/^DENIED\b/, 'Set a password on the server, or disable protected mode.'],
  [/^NOPERM\b/, 'Grant the ACL user the commands and keys that FluxGate uses.'],
  [/^ERR (DB index|invalid DB|SELECT)/i, 'Use a database that exists on the server. A cluster only has database 0.'],
  [/^ERR This instance has cluster support disabled/, 'Set uri instead of clusterNodes.'],
  [/^MOVED\b/, 'The server is a cluster node: use clusterNodes, or a cluster client.'],
  [/^the server does not use TLS$/, 'Use redis:// instead of rediss://, remove tls, or enable TLS on the server.'],
  [/^the server requires TLS$/, 'Use rediss:// instead of redis://, or set tls.'],
  [/^ERR No such master with that name/i, 'Set sentinelName to the name of the primary in the Sentinel configuration.'],
]

const tlsAdvice =
  'Use rediss:// or tls only with a server that uses TLS, and add private certificate authorities to NODE_EXTRA_CA_CERTS.'
const isTlsCode = (code: string): boolean =>
  /^(ERR_SSL|ERR_TLS|CERT_|EPROTO|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_(GET|VERIFY)|HOSTNAME_MISMATCH)/.test(code)

/** Replaces messages of the client libraries that would be unclear to a user. */
const clientMessages: readonly (readonly [RegExp, string])[] = [
  [/^Reached the max retries per request/, 'the connection was lost before the reply arrived'],
  [/^Stream isn't writeable/, 'there is no connection'],
  [/^Connection is closed\.?$/, 'the connection is closed'],
  [/^Socket timeout/, 'the server does not answer'],
]

function explain(error: unknown): Explanation {
  const { message, code } = textOf(error)
  if (isTlsCode(code)) return { reason: `the TLS handshake failed (${code})`, advice: tlsAdvice }
  const advice = configurationReplies.find(([pattern]) => pattern.test(message))?.[1]
  if (advice !== undefined) return { reason: message.replace(/\.$/, ''), advice }
  return { reason: clientMessages.find(([pattern]) => pattern.test(message))?.[1] ?? message }
}

function textOf(error: unknown): { message: string; code: string } {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  // A host name with several addresses fails with one error per address and an empty message.
  if (error instanceof AggregateError && error.errors.length > 0) return { ...textOf(error.errors[0]), code }
  // The server repeats the arguments of an unknown command, and arguments contain identities of clients.
  const message = messageOf(error).replace(/,? with args beginning with:.*/s, '')
  return { message, code }
}

/** Removes the command that ioredis attaches to its errors: its arguments may contain a password or a client's identity. */
export function withoutCommand(error: unknown): unknown {
  if (error instanceof Error && 'command' in error) delete error.command
  return error
}
