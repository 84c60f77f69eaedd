// @ts-check
/** nginx with `limit_req` and one process, as a service that answers itself or as a proxy. */
import { freePort, spawned } from './spawned.mjs'

const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']

/**
 * Starts nginx without an access log. The limit of the zone is never reached.
 *
 * @param {string} file
 * @param {object} options
 * @param {string} options.key variable that identifies a client
 * @param {string} [options.http] more directives of the http block
 * @param {string} options.location directives after `limit_req`
 */
export async function startNginx(file, { key, http = '', location }) {
  const port = await freePort()
  const { pid, stop } = await spawned(file, {
    port,
    args: (directory) => ['-p', directory, '-c', 'nginx.conf', '-e', 'error.log'],
    files: (directory) => ({
      'nginx.conf': `daemon off;
master_process off;
pid ${directory}/pid;
events { worker_connections 1024; }
http {
  access_log off;
  ${temporary.map((kind) => `${kind}_temp_path ${directory}/${kind};`).join('\n  ')}
  keepalive_requests 100000000;
  limit_req_zone ${key} zone=clients:10m rate=1000000r/s;
  ${http}
  server {
    listen 127.0.0.1:${port};
    location / {
      limit_req zone=clients burst=1000000 nodelay;
      ${location}
    }
  }
}
`,
    }),
  })
  return { port, pid, stop }
}

/** As a proxy with keep-alive connections and one limit per address. */
export const startNginxProxy = (/** @type {string} */ file, /** @type {number} */ upstreamPort) =>
  startNginx(file, {
    key: '$binary_remote_addr',
    http: `upstream service { server 127.0.0.1:${upstreamPort}; keepalive 128; keepalive_requests 100000000; }`,
    location: `proxy_pass http://service;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;`,
  })
