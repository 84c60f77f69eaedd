/** The files that `fluxgate init` writes. A test runs `rules validate` and `doctor` on them. */

export const configTemplate = `# Configuration of FluxGate. Every setting has a default; this file shows the common ones.
# \${NAME} and \${NAME:default} are environment variables. Check the file with: fluxgate doctor

server:
  # REST API, status page and metrics. Without an admin token it listens on this machine only.
  host: 127.0.0.1
  port: 8090
  adminToken: \${FLUXGATE_ADMIN_TOKEN:}

gateway:
  # Reverse proxy: requests to this port are limited and sent to the URI of the first matching route.
  # Without routes, \`fluxgate start\` proxies to a built-in example service.
  port: 8080
  # routes:
  #   - id: shop
  #     uri: http://127.0.0.1:3000
  #     predicates: [Path=/**]
  #     filters: [RateLimiter=default]

store:
  # Buckets in the memory of this process. Use Redis to share limits between processes:
  # uri: redis://127.0.0.1:6379
  type: memory

rules:
  # Saved edits of this file apply immediately.
  type: file
  path: rules.yaml

ratelimit:
  # The rule set of requests that name none.
  defaultRuleSetId: default
  # Headers that identify users and API keys. Name them only if clients cannot forge them.
  # userIdHeader: X-User-Id
  # apiKeyHeader: X-API-Key
  # Proxies whose X-Forwarded-For is trusted: addresses, networks, loopback, or a number of hops.
  # trustedProxies: [10.0.0.0/8]
`

export const rulesTemplate = `# Rules of FluxGate. Check the file with: fluxgate rules validate rules.yaml
#
# A rule selects requests (path, method, when), counts them per key (limitScope) and limits each key (bands).
# All rules that match a request apply to it. The request is allowed if all of them allow it.

ruleSets:
  - id: default
    rules:
      # 100 requests per minute and client address, refilled continuously.
      - id: per-address
        limitScope: IP
        bands:
          - { capacity: 100, window: 1m }

      # At most 5 attempts to log in per minute and client address.
      - id: login
        path: /login
        method: POST
        limitScope: IP
        algorithm: SLIDING_WINDOW_LOG
        bands:
          - { capacity: 5, window: 1m }

      # A rule in SHADOW mode is counted and reported, but never rejects: try a limit before you enforce it.
      - id: search
        path: /search/**
        mode: SHADOW
        bands:
          - { capacity: 10, window: 1s }
`
