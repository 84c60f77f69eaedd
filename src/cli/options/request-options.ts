/** Options that describe a request, shared by `check` and `simulate`. */
import { type Command, Option } from 'commander'
import type { RequestContext } from '../../core/request-context.js'
import { pairs } from './option-values.js'

export interface RequestOptions {
  readonly ip?: string
  readonly user?: string
  readonly apiKey?: string
  readonly method?: string
  readonly path?: string
  readonly header?: Record<string, string>
  readonly attribute?: Record<string, string>
}

/** Option names as commander returns them. */
export const requestOptionNames = ['ip', 'user', 'apiKey', 'method', 'path', 'header', 'attribute'] as const

export function withRequestOptions(command: Command): Command {
  return command
    .option('--ip <address>', 'client IP address')
    .option('--user <id>', 'user ID')
    .option('--api-key <key>', 'API key')
    .option('--method <method>', 'HTTP method')
    .option('--path <path>', 'request path')
    .addOption(new Option('--header <name:value>', 'request header; repeatable').argParser(pairs(':')))
    .addOption(new Option('--attribute <name=value>', 'request attribute; repeatable').argParser(pairs('=')))
}

export function contextOf(options: RequestOptions): RequestContext {
  const { ip, user, apiKey, method, path, header = {}, attribute } = options
  const headers = Object.fromEntries(Object.entries(header).map(([name, value]) => [name.toLowerCase(), value]))
  return { clientIp: ip, userId: user, apiKey, method: method?.toUpperCase(), path, headers, attributes: attribute }
}
