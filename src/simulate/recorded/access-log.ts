import type { RequestContext } from '../../core/request-context.js'
import type { Arrival } from '../arrival.js'
import { parseTimestamp } from './timestamp.js'

/** The common and combined log formats, optionally with a leading virtual host. `-` is a missing value. */
const linePattern =
  /^(?:\S+:\d+ )?([0-9A-Za-z.:_-]+) \S+ (\S+(?: \S+)*?) \[([^\]]{20,40})\] "((?:[^"\\]|\\.)*)"(?: \S+ \S+(?: "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)")?)?/
const requestPattern = /^([A-Z]+) (\S+)/

export function parseAccessLogLine(line: string): Arrival | undefined {
  const match = linePattern.exec(line)
  const at = parseTimestamp(match?.[3])
  if (!match || at === undefined) return undefined
  const [, clientIp, user, , request = '', referer, userAgent] = match
  const [, method, path] = requestPattern.exec(request) ?? []
  const headers = { referer: present(referer), 'user-agent': present(userAgent) }
  const context: RequestContext = { clientIp, userId: present(user), method, path, headers }
  return { at, context }
}

const present = (value: string | undefined): string | undefined => (value === '-' || value === '' ? undefined : value)
