// @ts-check
/** Envoy with its HTTP rate limit filter. The service behind it is a second listener that answers by itself. */
import { freePort, spawned } from '../services/spawned.mjs'

const type = (/** @type {string} */ name) => `type.googleapis.com/envoy.extensions.${name}`

/**
 * @param {string} file path of the program
 * @param {number} grpcPort of the rate limit service
 * @param {readonly string[]} keys one descriptor each, whose value is the header `x-<key>`
 */
export async function startEnvoy(file, grpcPort, keys) {
  const [port, behind] = [await freePort(), await freePort()]
  const service = await spawned(file, {
    port,
    args: () => ['-c', 'envoy.json', '--use-dynamic-base-id', '--concurrency', '1', '-l', 'error'],
    files: () => ({ 'envoy.json': JSON.stringify(configuration(port, behind, grpcPort, keys)) }),
  })
  return { port, stop: service.stop }
}

/** @type {(port: number, behind: number, grpcPort: number, keys: readonly string[]) => object} */
function configuration(port, behind, grpcPort, keys) {
  const rateLimit = {
    name: 'envoy.filters.http.ratelimit',
    typed_config: {
      '@type': type('filters.http.ratelimit.v3.RateLimit'),
      domain: 'edge',
      timeout: '5s',
      rate_limit_service: { transport_api_version: 'V3', grpc_service: { envoy_grpc: { cluster_name: 'limits' } } },
    },
  }
  const rate_limits = keys.map((key) => ({
    actions: [{ request_headers: { header_name: `x-${key}`, descriptor_key: key } }],
  }))
  const limited = { match: { prefix: '/' }, route: { cluster: 'behind', rate_limits } }
  const constant = { match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: 'ok' } } }
  const http2 = {
    typed_extension_protocol_options: {
      'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
        '@type': type('upstreams.http.v3.HttpProtocolOptions'),
        explicit_http_config: { http2_protocol_options: {} },
      },
    },
  }
  return {
    static_resources: {
      listeners: [listener(port, [rateLimit], limited), listener(behind, [], constant)],
      clusters: [cluster('behind', behind, {}), cluster('limits', grpcPort, http2)],
    },
  }
}

const address = (/** @type {number} */ port) => ({ socket_address: { address: '127.0.0.1', port_value: port } })

/** @type {(port: number, filters: readonly object[], route: object) => object} */
const listener = (port, filters, route) => ({
  address: address(port),
  filter_chains: [
    {
      filters: [
        {
          name: 'envoy.filters.network.http_connection_manager',
          typed_config: {
            '@type': type('filters.network.http_connection_manager.v3.HttpConnectionManager'),
            stat_prefix: 'bench',
            route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [route] }] },
            http_filters: [
              ...filters,
              {
                name: 'envoy.filters.http.router',
                typed_config: { '@type': type('filters.http.router.v3.Router') },
              },
            ],
          },
        },
      ],
    },
  ],
})

/** Never refuses a connection or a request because too many are open. @type {(name: string, port: number, options: object) => object} */
const cluster = (name, port, options) => ({
  name,
  connect_timeout: '5s',
  circuit_breakers: { thresholds: [{ max_connections: 4096, max_pending_requests: 4096, max_requests: 4096 }] },
  load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint: { address: address(port) } }] }] },
  ...options,
})
