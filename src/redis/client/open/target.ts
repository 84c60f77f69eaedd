// biome-ignore lint/suspicious/noTsIgnore: an error is only expected in programs without the types of Node
/** @ts-ignore Programs for edge runtimes compile without the types of Node. */
import type { ConnectionOptions } from 'node:tls'
import { FluxGateError } from '../../../core/errors.js'
import { omitUndefined } from '../../../core/omit-undefined.js'
import { addressInvalid, nodeForms, nodeText, parseNode, parseRedisUri, type RedisNode, uriForms } from './address.js'

/** Redis connection options. Exactly one of `uri`, `clusterNodes` and `sentinels` is required. */
export interface RedisOptions {
  /** `redis://user:password@host:port/database`, or `rediss://` for TLS. */
  readonly uri?: string
  /** Seed nodes of a Redis Cluster, as `host:port`; the other nodes are discovered. */
  readonly clusterNodes?: readonly (string | RedisNode)[]
  /** Sentinels, as `host:port`; other sentinels are discovered. */
  readonly sentinels?: readonly (string | RedisNode)[]
  /** Name of the primary in Sentinel; default `mymaster`. */
  readonly sentinelName?: string
  /** ACL user. Overrides the user in the URI. */
  readonly username?: string
  /** Overrides the password in the URI. */
  readonly password?: string
  /** ACL user of the sentinels, if they need one. */
  readonly sentinelUsername?: string
  /** Password of the sentinels, if they need one. */
  readonly sentinelPassword?: string
  /** Use TLS for `clusterNodes` and `sentinels`, or options of `node:tls`. A URI uses TLS with `rediss://`. */
  readonly tls?: boolean | ConnectionOptions
  /** Number of connections that share the calls, from 1 to 64; default 1. */
  readonly connections?: number
}

/** Settings of a Redis store, as in a configuration file. */
export interface RedisStoreSettings extends RedisOptions {
  /** Prefix of all Redis keys; default `fluxgate`. */
  readonly prefix?: string
  /** Timeout of a call in milliseconds; default 100. */
  readonly timeoutMs?: number
  /** How long decisions wait for the first connection, in milliseconds; default 2000. */
  readonly connectTimeoutMs?: number
  /** Maximum share of a capacity that this process may lease under LEASED; default 0.1. */
  readonly leaseShare?: number
  /** Cache rejections in this process until they end; default true. */
  readonly cachedRejections?: boolean
  /** @deprecated Use `cachedRejections`. */
  readonly knownRefusals?: boolean
}

interface Access {
  readonly username?: string
  readonly password?: string
  readonly tls?: ConnectionOptions
  /** Address for messages. */
  readonly where: string
}

/** Validated connection options. */
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
  const kinds = Object.keys(omitUndefined({ uri, clusterNodes, sentinels }))
  if (kinds.length !== 1) {
    const received = kinds.length === 0 ? 'none' : kinds.join(' and ')
    throw new FluxGateError(
      'FLUXGATE_CONFIG_INVALID',
      `The Redis options need exactly one of uri, clusterNodes, sentinels; received ${received}.`,
    )
  }
  if (uri !== undefined) return serverTarget(uri, options)
  const access = omitUndefined({ ...accessOf(options), tls: tlsOf(options.tls, false) })
  if (clusterNodes !== undefined) {
    const nodes = nodesOf('clusterNodes', clusterNodes, 6379)
    return { kind: 'cluster', nodes, where: `the cluster of ${nodes.map(nodeText).join(', ')}`, ...access }
  }
  const nodes = nodesOf('sentinels', sentinels, 26_379)
  const { sentinelName: name = 'mymaster', sentinelUsername, sentinelPassword } = options
  const where = `the sentinels ${nodes.map(nodeText).join(', ')} of ${name}`
  return { kind: 'sentinels', nodes, name, where, ...access, ...omitUndefined({ sentinelUsername, sentinelPassword }) }
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
    ...omitUndefined({ username, password, ...accessOf(options), tls: tlsOf(options.tls, address.tls) }),
  }
}

const accessOf = ({ username, password }: RedisOptions): Pick<RedisOptions, 'username' | 'password'> =>
  omitUndefined({ username, password })

function tlsOf(tls: RedisOptions['tls'], isInUri: boolean): ConnectionOptions | undefined {
  if (typeof tls === 'object') return tls
  return tls === true || isInUri ? {} : undefined
}

function nodesOf(place: string, values: unknown, defaultPort: number): readonly RedisNode[] {
  const nodes = Array.isArray(values) ? values.map((value) => parseNode(value, defaultPort)) : []
  if (nodes.length === 0 || nodes.includes(undefined)) throw addressInvalid(place, `a list of ${nodeForms}`)
  return nodes as RedisNode[]
}
