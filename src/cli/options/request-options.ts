/** Options that describe one request, for the commands that decide about requests. */
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

/** As the options are called in code. */
export const requestOptionNames = ['ip', 'user', 'apiKey', 'method', 'path', 'header', 'attribute'] as const

export function withRequestOptions(command: Command): Command {
  return command
    .option('--ip <address>', 'client address')
    .option('--user <id>', 'user id')
    .option('--api-key <key>', 'API key')
    .option('--method <method>', 'HTTP method')
    .option('--path <path>', 'request path')
    .addOption(new Option('--header <name:value>', 'a header; repeatable').argParser(pairs(':')))
    .addOption(new Option('--attribute <name=value>', 'an attribute; repeatable').argParser(pairs('=')))
}

export function contextOf(options: RequestOptions): RequestContext {
  const { ip, user, apiKey, method, path, header = {}, attribute } = options
  const headers = Object.fromEntries(Object.entries(header).map(([name, value]) => [name.toLowerCase(), value]))
  return { clientIp: ip, userId: user, apiKey, method: method?.toUpperCase(), path, headers, attributes: attribute }
}
