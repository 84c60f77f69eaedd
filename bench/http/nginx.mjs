// @ts-check
/** nginx with `limit_req` and one worker, if it is installed. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Broken } from '../measure.mjs'

/** @returns {Promise<import('./processes.mjs').Listening | undefined>} */
export async function startNginx(/** @type {string} */ name, /** @type {number} */ upstreamPort) {
  const directory = mkdtempSync(join(tmpdir(), 'fluxgate-bench-'))
  const port = await freePort()
  writeFileSync(join(directory, 'nginx.conf'), configuration(directory, port, upstreamPort))
  const child = spawn('nginx', ['-p', directory, '-c', 'nginx.conf', '-e', join(directory, 'error.log')], {
    stdio: 'ignore',
  })
  const stop = () => {
    child.kill('SIGTERM')
    rmSync(directory, { recursive: true, force: true })
  }
  try {
    await once(child, 'spawn')
  } catch {
    stop()
    return undefined
  }
  return { name, port, pid: await worker(child, directory), stop }
}

/** No access log; one limit per client address that is never reached. */
const configuration = (
  /** @type {string} */ directory,
  /** @type {number} */ port,
  /** @type {number} */ upstreamPort,
) => `daemon off;
worker_processes 1;
pid ${directory}/pid;
events { worker_connections 1024; }
http {
  access_log off;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${directory}/${kind};`).join('\n  ')}
  keepalive_requests 1000000;
  limit_req_zone $binary_remote_addr zone=clients:1m rate=1000000r/s;
  upstream service { server 127.0.0.1:${upstreamPort}; keepalive 128; keepalive_requests 1000000; }
  server {
    listen 127.0.0.1:${port};
    location /api/ {
      limit_req zone=clients burst=1000000 nodelay;
      proxy_pass http://service;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }
  }
}
`

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  server.close()
  await once(server, 'close')
  return port
}

/** The worker is the only child of the process that was started. */
async function worker(/** @type {import('node:child_process').ChildProcess} */ child, /** @type {string} */ directory) {
  for (let look = 0; look < 100 && child.exitCode === null; look++) {
    await new Promise((resolve) => setTimeout(resolve, 50))
    const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim()
    if (children !== '') return Number(children.split(' ')[0])
  }
  throw new Broken(`nginx did not start: ${readFileSync(join(directory, 'error.log'), 'utf8')}`)
}
