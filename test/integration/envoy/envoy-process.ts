import { type ChildProcess, spawn } from 'node:child_process'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { envoyFile } from '../../../scripts/bootstrap/envoy.mjs'
import { eventually } from '../../fixtures/eventually.js'
import { freePort } from '../../servers/free-port.js'

/** The Envoy program; undefined if it is not installed. */
export const envoyProgram = envoyFile()

if (envoyProgram === undefined)
  process.stderr.write(
    'Skipping the tests with Envoy: run node scripts/bootstrap.mjs envoy, or set FLUXGATE_TEST_ENVOY.\n',
  )

export interface EnvoyOptions {
  readonly grpcPort: number
  /** The `rate_limits` of all routes. */
  readonly rateLimits: readonly object[]
  /** Further fields of the filter. */
  readonly filter?: object
  /** Further fields of the HTTP options of the cluster of FluxGate. */
  readonly clusterOptions?: object
}

export interface RunningEnvoy {
  get(path: string, headers?: Record<string, string>): Promise<{ status: number; headers: Headers }>
}

/** Starts Envoy in front of a service that answers 200. Stops after the test. */
export async function startEnvoy({
  grpcPort,
  rateLimits,
  filter,
  clusterOptions = {},
}: EnvoyOptions): Promise<RunningEnvoy> {
  const service = createServer((request, response) => response.end(bodyFor(request.headers)))
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
  const port = await freePort()
  const config = configuration({
    port,
    grpcPort,
    servicePort: (service.address() as AddressInfo).port,
    rateLimits,
    filter,
    clusterOptions,
  })
  const args = ['--config-yaml', JSON.stringify(config), '--use-dynamic-base-id', '--concurrency', '1', '-l', 'error']
  const child: ChildProcess = spawn(envoyProgram as string, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let errors = ''
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    errors = (errors + text).slice(-4_000)
  })
  onTestFinished(() => {
    child.kill('SIGKILL')
    service.closeAllConnections()
    service.close()
  })
  const url = `http://127.0.0.1:${port}`
  await eventually('Envoy to listen', async () => {
    if (child.exitCode !== null) throw new Error(`Envoy exited: ${errors}`)
    return fetch(`${url}/ready`).then(
      () => true,
      () => false,
    )
  })
  return {
    async get(path, headers = {}) {
      const response = await fetch(`${url}${path}`, { headers })
      await response.arrayBuffer()
      return { status: response.status, headers: response.headers }
    },
  }
}

const bodyFor = ({ 'x-bytes': bytes }: IncomingHttpHeaders): string => 'x'.repeat(Number(bytes ?? 1))

const type = (name: string) => `type.googleapis.com/envoy.extensions.${name}`

interface Ports extends Omit<EnvoyOptions, 'filter' | 'clusterOptions'> {
  readonly port: number
  readonly servicePort: number
  readonly filter: object | undefined
  readonly clusterOptions: object
}

function configuration({ port, grpcPort, servicePort, rateLimits, filter, clusterOptions }: Ports): object {
  const cluster = (name: string, target: number, options: object = {}) => ({
    name,
    connect_timeout: '5s',
    load_assignment: {
      cluster_name: name,
      endpoints: [
        {
          lb_endpoints: [{ endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: target } } } }],
        },
      ],
    },
    ...options,
  })
  const http2 = {
    typed_extension_protocol_options: {
      'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
        '@type': type('upstreams.http.v3.HttpProtocolOptions'),
        explicit_http_config: { http2_protocol_options: {} },
        ...clusterOptions,
      },
    },
  }
  const rateLimit = {
    '@type': type('filters.http.ratelimit.v3.RateLimit'),
    domain: 'edge',
    timeout: '5s',
    rate_limit_service: { transport_api_version: 'V3', grpc_service: { envoy_grpc: { cluster_name: 'fluxgate' } } },
    ...filter,
  }
  const manager = {
    '@type': type('filters.network.http_connection_manager.v3.HttpConnectionManager'),
    stat_prefix: 'edge',
    route_config: {
      virtual_hosts: [
        {
          name: 'all',
          domains: ['*'],
          routes: [
            { match: { path: '/ready' }, direct_response: { status: 200 } },
            {
              match: { prefix: '/' },
              route: { cluster: 'service' },
              typed_per_filter_config: {
                'envoy.filters.http.ratelimit': {
                  '@type': type('filters.http.ratelimit.v3.RateLimitPerRoute'),
                  rate_limits: rateLimits,
                },
              },
            },
          ],
        },
      ],
    },
    http_filters: [
      { name: 'envoy.filters.http.ratelimit', typed_config: rateLimit },
      { name: 'envoy.filters.http.router', typed_config: { '@type': type('filters.http.router.v3.Router') } },
    ],
  }
  return {
    static_resources: {
      listeners: [
        {
          address: { socket_address: { address: '127.0.0.1', port_value: port } },
          filter_chains: [
            { filters: [{ name: 'envoy.filters.network.http_connection_manager', typed_config: manager }] },
          ],
        },
      ],
      clusters: [cluster('service', servicePort), cluster('fluxgate', grpcPort, http2)],
    },
  }
}
