import type { ConnectionOptions } from 'node:tls'
import { FluxGateError } from '../../../core/errors.js'
import { given } from '../../../core/omit-undefined.js'
import { addressInvalid, nodeForms, nodeText, parseNode, parseRedisUri, type RedisNode, uriForms } from './address.js'

/** Where Redis is and how to get in. Exactly one of `uri`, `clusterNodes` and `sentinels` is given. */
export interface RedisOptions {
  /** `redis://user:password@host:port/database`, or `rediss://` for TLS. */
  readonly uri?: string
  /** Some nodes of a cluster, as `host:port`; the others are found by themselves. */
  readonly clusterNodes?: readonly (string | RedisNode)[]
  /** Some sentinels, as `host:port`. */
  readonly sentinels?: readonly (string | RedisNode)[]
  /** What the sentinels call the primary; default `mymaster`. */
  readonly sentinelName?: string
  /** These two win over those in the URI. */
  readonly username?: string
  readonly password?: string
  readonly sentinelUsername?: string
  readonly sentinelPassword?: string
  /** For `clusterNodes` and `sentinels`, where no `rediss://` says it; or options of `node:tls`. */
  readonly tls?: boolean | ConnectionOptions
  /** How many sockets share the calls; default 1. */
  readonly connections?: number
}

/** A store in Redis, as the configuration describes it; what is left out has the default of the store. */
export interface RedisStoreSettings extends RedisOptions {
  /** How keys begin. */
  readonly prefix?: string
  /** How long one call may take. */
  readonly timeoutMs?: number
  /** How long decisions wait for the first connection; default 2000. */
  readonly connectTimeoutMs?: number
  /** The part of a capacity that one lease may hold at most. */
  readonly leaseShare?: number
  /** Whether refusals are remembered in this process until they end. */
  readonly knownRefusals?: boolean
}

interface Access {
  readonly username?: string
  readonly password?: string
  readonly tls?: ConnectionOptions
  /** How it appears in messages. */
  readonly where: string
}

/** The options, read and found to be in order. */
export type RedisTarget = Access &
  (
    | { readonly kind: 'server'; readonly node: RedisNode; readonly database: number }
    | { readonly kind: 'cluster'; readonly nodes: readonly RedisNode[] }
    | {
        readonly kind: 'sentinels'
        readonly nodes: readonly RedisNode[]
        readonly name: string
        readonly sentinelUsername?: string
        readonly sentinelPassword?: string
      }
  )

export const maxConnections = 64

export function redisTarget(options: RedisOptions): RedisTarget {
  const { uri, clusterNodes, sentinels } = options
  const kinds = Object.keys(given({ uri, clusterNodes, sentinels }))
  if (kinds.length !== 1) {
    const found = kinds.length === 0 ? 'none of them' : kinds.join(' and ')
    throw new FluxGateError(
      'FLUXGATE_CONFIG_INVALID',
      `redis: found ${found}; allowed: one of uri, clusterNodes, sentinels.`,
    )
  }
  if (uri !== undefined) return serverTarget(uri, options)
  const access = given({ ...accessOf(options), tls: tlsOf(options.tls, false) })
  if (clusterNodes !== undefined) {
    const nodes = nodesOf('clusterNodes', clusterNodes, 6379)
    return { kind: 'cluster', nodes, where: `the cluster of ${nodes.map(nodeText).join(', ')}`, ...access }
  }
  const nodes = nodesOf('sentinels', sentinels, 26_379)
  const { sentinelName: name = 'mymaster', sentinelUsername, sentinelPassword } = options
  const where = `the sentinels ${nodes.map(nodeText).join(', ')} of ${name}`
  return { kind: 'sentinels', nodes, name, where, ...access, ...given({ sentinelUsername, sentinelPassword }) }
}

function serverTarget(uri: string, options: RedisOptions): RedisTarget {
  const address = parseRedisUri(uri)
  if (address === undefined) throw addressInvalid('uri', uriForms)
  const { host, port, database = 0, username, password } = address
  return {
    kind: 'server',
    node: { host, port },
    database,
    where: nodeText({ host, port }),
    ...given({ username, password, ...accessOf(options), tls: tlsOf(options.tls, address.tls) }),
  }
}

const accessOf = ({ username, password }: RedisOptions): Pick<RedisOptions, 'username' | 'password'> =>
  given({ username, password })

function tlsOf(tls: RedisOptions['tls'], isAsked: boolean): ConnectionOptions | undefined {
  if (typeof tls === 'object') return tls
  return tls === true || isAsked ? {} : undefined
}

function nodesOf(place: string, values: unknown, usualPort: number): readonly RedisNode[] {
  const nodes = Array.isArray(values) ? values.map((value) => parseNode(value, usualPort)) : []
  if (nodes.length === 0 || nodes.includes(undefined)) throw addressInvalid(place, `a list of ${nodeForms}`)
  return nodes as RedisNode[]
}
