/** Checks deploy/ without a container engine: files exist, names are known, commands run. */
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { loadConfig } from '../src/config/config.js'
import { settings } from '../src/config/settings.js'
import type { Setting } from '../src/validation/setting.js'
import { environmentName } from '../src/validation/setting-names.js'
import { eventually } from './fixtures/eventually.js'
import { freePort } from './servers/free-port.js'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const read = (name: string): string => readFileSync(join(root, 'deploy', name), 'utf8')
const scratch = mkdtempSync(join(tmpdir(), 'fluxgate-deploy-'))
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

const variables = new Set(
  Object.entries<Readonly<Record<string, Setting<unknown>>>>(settings).flatMap(([section, members]) =>
    Object.entries(members).flatMap(([key, { variable }]) => [environmentName(`${section}.${key}`), variable]),
  ),
)
const unknownVariables = (text: string): string[] =>
  (text.match(/FLUXGATE_\w+/g) ?? []).filter((name) => !variables.has(name))

it.each(['Dockerfile', 'compose.yaml', 'fluxgate.service', 'kubernetes.yaml'])(
  '%s uses only known variables',
  (name) => {
    expect(read(name)).toMatch(/FLUXGATE_/)
    expect(unknownVariables(read(name))).toEqual([])
  },
)

interface Lock {
  readonly packages: Readonly<Record<string, { version?: string; dev?: boolean; peer?: boolean }>>
}

interface Instruction {
  readonly name: string
  readonly rest: string
}

const instructions: Instruction[] = read('Dockerfile')
  .replaceAll(/^#.*\n/gm, '')
  .replaceAll(/\\\n\s*/g, '')
  .split('\n')
  .filter((line) => line.trim() !== '')
  .map((line) => {
    const [, name = '', rest = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? []
    return { name, rest }
  })
const named = (name: string): string[] => instructions.filter((one) => one.name === name).map(({ rest }) => rest)
/** Copied files of the repository and their destinations. */
const copies = named('COPY')
  .filter((rest) => !rest.includes('--from='))
  .map((rest) => {
    const parts = rest.split(' ').filter((part) => !part.startsWith('--'))
    return { sources: parts.slice(0, -1), target: parts.at(-1) as string }
  })

describe('the Dockerfile', () => {
  it('copies existing files that are not ignored, and uses images of a supported Node.js version', () => {
    const ignored = read('Dockerfile.dockerignore')
      .split('\n')
      .filter((line) => line.startsWith('!'))
    const sources = copies.flatMap((copy) => copy.sources)
    expect(sources.filter((source) => !existsSync(join(root, source)))).toEqual([])
    expect(sources.map((source) => `!${source}`).sort()).toEqual(ignored.sort())
    for (const from of named('FROM')) expect(Number(/^node:(\d+)-slim/.exec(from)?.[1])).toBeGreaterThanOrEqual(22)
  })

  it('runs as a user other than root, with a health check and a command', () => {
    const last = instructions.slice(instructions.findLastIndex(({ name }) => name === 'FROM')).map(({ name }) => name)
    expect(named('USER')).toEqual(['node'])
    expect(last.indexOf('USER')).toBeGreaterThan(last.lastIndexOf('RUN'))
    expect(last).toEqual(expect.arrayContaining(['HEALTHCHECK', 'ENTRYPOINT', 'CMD', 'EXPOSE']))
    expect(named('EXPOSE')).toEqual([`${settings.gateway.port.defaultValue} ${settings.server.port.defaultValue}`])
  })

  it('installs the database clients in the locked versions, and no development dependencies', () => {
    const directory = join(scratch, 'packages')
    mkdirSync(directory)
    for (const name of ['package.json', 'package-lock.json']) cpSync(join(root, name), join(directory, name))
    const [, , command = ''] = named('RUN')
    // The lock file determines the packages and is complete, so no registry is needed.
    const env = { ...process.env, npm_config_package_lock_only: 'true', npm_config_offline: 'true' }
    const { status, stderr } = spawnSync('sh', ['-c', command], { cwd: directory, env, encoding: 'utf8' })
    expect(status, stderr).toBe(0)
    const lockOf = (directory: string) =>
      (JSON.parse(readFileSync(join(directory, 'package-lock.json'), 'utf8')) as Lock).packages
    const [known, installed] = [lockOf(root), lockOf(directory)]
    expect(Object.values(installed).filter(({ dev, peer }) => dev || peer)).toEqual([])
    const names = Object.keys(installed).filter((name) => name !== '')
    expect(names).toEqual(expect.arrayContaining(['node_modules/ioredis', 'node_modules/mongodb']))
    for (const name of names) expect(installed[name]?.version, name).toBe(known[name]?.version)
  })

  it('builds and runs from the copied files alone, and passes its health check', async () => {
    const build = join(scratch, 'build')
    mkdirSync(build)
    const ofBuild = copies.filter(({ target }) => target.startsWith('./'))
    for (const { sources, target } of ofBuild)
      for (const source of sources)
        cpSync(join(root, source), join(build, target, target === './' ? source : ''), { recursive: true })
    symlinkSync(join(root, 'node_modules'), join(build, 'node_modules'))
    const [, command = ''] = named('RUN')
    const built = spawnSync('sh', ['-c', command], { cwd: build, encoding: 'utf8' })
    expect(built.status, built.stderr).toBe(0)

    const directory = join(scratch, 'etc')
    mkdirSync(directory)
    cpSync(join(root, 'rules.yaml'), join(directory, 'rules.yaml'))
    const inImage = (text: string): string[] =>
      (JSON.parse(text) as string[]).map((word) => word.replace(/^\/app/, build))
    const [program = '', ...args] = [...inImage(named('ENTRYPOINT')[0] ?? ''), ...inImage(named('CMD')[0] ?? '')]
    const env = {
      PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
      FLUXGATE_ADMIN_TOKEN: 'test-token',
      FLUXGATE_SERVER_PORT: String(await freePort()),
      FLUXGATE_GATEWAY_PORT: '0',
      ...Object.fromEntries(
        named('ENV')
          .join(' ')
          .split(/\s+/)
          .map((pair) => pair.split('=') as [string, string]),
      ),
    }
    const running = spawn(program, args, { cwd: directory, env, stdio: ['ignore', 'pipe', 'inherit'] })
    try {
      let output = ''
      running.stdout.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
      await eventually('the program has started', () => output.includes('"event":"started"'))
      const [, check = ''] = /CMD (\[.*\])/.exec(named('HEALTHCHECK')[0] ?? '') ?? []
      const [node = '', ...rest] = JSON.parse(check) as string[]
      expect(spawnSync(node, rest, { env }).status).toBe(0)
      expect(spawnSync(node, rest, { env: { ...env, FLUXGATE_SERVER_PORT: '1' } }).status).toBe(1)
      const api = `http://127.0.0.1:${env.FLUXGATE_SERVER_PORT}`
      const page = await fetch(`${api}/console`, { headers: { Accept: 'text/html' } })
      expect(await page.text()).toContain('<title>FluxGate</title>')
      const { paths } = (await (
        await fetch(`${api}/openapi.json`, { headers: { Authorization: 'Bearer test-token' } })
      ).json()) as {
        paths: Record<string, unknown>
      }
      for (const path of probePaths()) {
        expect(Object.keys(paths)).toContain(path)
        expect((await fetch(`${api}${path}`)).status).toBe(200)
      }
    } finally {
      running.kill()
    }
  }, 180_000)
})

interface Service {
  readonly image: string
  readonly command?: string[]
  readonly environment?: Record<string, string>
  readonly volumes?: string[]
  readonly depends_on?: Record<string, { condition: string }>
  readonly build?: { context: string; dockerfile: string }
  readonly healthcheck?: object
}

/** Expects that the command exists and that its help lists all given options. */
function expectValidCommand(args: readonly string[]): void {
  const program = join(root, 'dist', 'command', 'main.js')
  const words = args.filter((word) => !word.startsWith('-'))
  const command = words[0] === 'rules' ? words.slice(0, 2) : words.slice(0, 1)
  const { status, stdout } = spawnSync(process.execPath, [program, ...command, '--help'], { encoding: 'utf8' })
  expect(status).toBe(0)
  for (const option of args.filter((word) => word.startsWith('--'))) expect(stdout).toContain(option)
}

describe('the compose file', () => {
  const { services, volumes } = parse(read('compose.yaml'), { merge: true }) as {
    services: Record<string, Service>
    volumes: Record<string, unknown>
  }

  it('defines Redis, MongoDB and FluxGate, and references only existing services, volumes and files', () => {
    expect(Object.keys(services)).toEqual(['redis', 'mongo', 'rules', 'fluxgate'])
    for (const { depends_on = {}, volumes: mounted = [], build } of Object.values(services)) {
      for (const [name, { condition }] of Object.entries(depends_on)) {
        expect(Object.keys(services)).toContain(name)
        if (condition === 'service_healthy') expect(services[name]?.healthcheck).toBeDefined()
      }
      for (const mount of mounted) {
        const [source = ''] = mount.split(':')
        if (source.startsWith('.')) expect(existsSync(join(root, 'deploy', source)), source).toBe(true)
        else expect(Object.keys(volumes)).toContain(source)
      }
      if (build !== undefined) expect(existsSync(join(root, 'deploy', build.context, build.dockerfile))).toBe(true)
    }
  })

  it('has valid settings and commands', async () => {
    for (const name of ['rules', 'fluxgate']) expectValidCommand(services[name]?.command ?? [])
    const environment = services.fluxgate?.environment ?? {}
    const env = { ...environment, FLUXGATE_ADMIN_TOKEN: 'x', FLUXGATE_CHECK_TOKEN: '' }
    const config = await loadConfig({ path: join(root, 'deploy', 'fluxgate.yaml'), env, cwd: root })
    expect([config.store.type, config.rules.type]).toEqual(['redis', 'mongo'])
  })
})

describe('the systemd unit', () => {
  const unit = read('fluxgate.service')

  it('runs a valid command', () => {
    const [, command = ''] = /^ExecStart=\/usr\/bin\/env fluxgate (.*)$/m.exec(unit) ?? []
    expectValidCommand(command.split(' '))
  })

  it('allows the system calls of V8, and no other call that it filters ends the process', () => {
    expect(unit).toMatch(/^SystemCallFilter=@system-service @pkey$/m)
    expect(unit).toMatch(/^SystemCallErrorNumber=EPERM$/m)
  })

  it('passes systemd-analyze verify and security', () => {
    const file = join(scratch, 'fluxgate.service')
    writeFileSync(file, unit.replace('/usr/bin/env fluxgate', process.execPath))
    const verified = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' })
    if (verified.error !== undefined) {
      console.info('systemd-analyze is not installed: the unit is not verified.')
      return
    }
    expect(`${verified.stdout}${verified.stderr}`).toBe('')
    const security = spawnSync(
      'systemd-analyze',
      ['security', '--offline=true', '--threshold=20', '--no-pager', file],
      {
        encoding: 'utf8',
      },
    )
    expect(security.status, security.stdout).toBe(0)
  })
})

interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string }
  // biome-ignore lint/suspicious/noExplicitAny: the tests check the members that they read.
  readonly [name: string]: any
}

const manifests = parseAllDocuments(read('kubernetes.yaml')).map((document) => {
  expect(document.errors).toEqual([])
  return document.toJS() as Manifest
})
const manifest = (kind: string): Manifest => manifests.find((one) => one.kind === kind) as Manifest

function probePaths(): string[] {
  const [container] = manifest('Deployment').spec.template.spec.containers
  return ['startupProbe', 'livenessProbe', 'readinessProbe'].map((probe) => container[probe].httpGet.path)
}

describe('the Kubernetes manifest', () => {
  it('has the expected resources with matching labels and names', () => {
    expect(manifests.map(({ apiVersion, kind }) => `${apiVersion} ${kind}`)).toEqual([
      'v1 ConfigMap',
      'apps/v1 Deployment',
      'v1 Service',
      'policy/v1 PodDisruptionBudget',
    ])
    const { selector, template } = manifest('Deployment').spec
    const { labels } = template.metadata
    for (const matchLabels of [
      selector.matchLabels,
      manifest('Service').spec.selector,
      manifest('PodDisruptionBudget').spec.selector.matchLabels,
    ])
      expect(labels).toMatchObject(matchLabels)
    const [{ ports, volumeMounts }] = template.spec.containers
    expect(manifest('Service').spec.ports.map(({ targetPort }: { targetPort: string }) => targetPort)).toEqual(
      ports.map(({ name }: { name: string }) => name),
    )
    expect(template.spec.volumes.map(({ name }: { name: string }) => name)).toEqual(
      volumeMounts.map(({ name }: { name: string }) => name),
    )
    expect(template.spec.volumes[0].configMap.name).toBe(manifest('ConfigMap').metadata.name)
  })

  it('keeps pods ready without Redis, with a probe timeout longer than the Redis timeout', async () => {
    expect(probePaths()).toEqual(['/health/live', '/health/live', '/health/ready'])
    const [{ readinessProbe }] = manifest('Deployment').spec.template.spec.containers
    writeFileSync(join(scratch, 'k8s.yaml'), manifest('ConfigMap').data['fluxgate.yaml'])
    const { store } = await loadConfig({
      path: join(scratch, 'k8s.yaml'),
      env: { FLUXGATE_REDIS_URI: 'redis://redis:6379' },
      cwd: scratch,
    })
    expect(readinessProbe.timeoutSeconds * 1_000).toBeGreaterThan(store.timeoutMs ?? 100)
  })

  it('runs without privileges and stops within the grace period', () => {
    const { spec } = manifest('Deployment').spec.template
    const [{ securityContext, lifecycle, resources }] = spec.containers
    expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
    expect(securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
    expect(resources.limits.memory).toBeDefined()
    const pause = Number(lifecycle.preStop.exec.command[1])
    expect(spec.terminationGracePeriodSeconds).toBeGreaterThan(pause + 20)
  })

  it('has valid settings, a valid command and the image of this version', async () => {
    const [{ args, image, ports }] = manifest('Deployment').spec.template.spec.containers
    expectValidCommand(args)
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
    expect(image).toBe(`fluxgate:${version}`)
    writeFileSync(join(scratch, 'k8s.yaml'), manifest('ConfigMap').data['fluxgate.yaml'])
    const env = { FLUXGATE_ADMIN_TOKEN: 'x', FLUXGATE_REDIS_URI: 'redis://redis:6379' }
    const config = await loadConfig({ path: join(scratch, 'k8s.yaml'), env, cwd: scratch })
    expect([config.store.type, config.rules.type, config.server.host]).toEqual(['redis', 'redis', '0.0.0.0'])
    expect(ports[0].containerPort).toBe(config.server.port)
    expect(config.server.drainTimeout).toBe(20_000)
  })
})

describe('the kustomizations', () => {
  interface Kustomization {
    readonly resources: string[]
    readonly configMapGenerator: { name: string; files: string[] }[]
  }
  interface Resource {
    readonly kind: string
    readonly metadata: { name: string }
    // biome-ignore lint/suspicious/noExplicitAny: the documents of Kubernetes have many shapes.
    readonly spec: any
  }
  const base = 'kustomize/base'
  const overlays = ['kustomize/overlays/envoy-sidecar', 'kustomize/overlays/envoy-gateway']
  const kustomizationOf = (directory: string) => parse(read(`${directory}/kustomization.yaml`)) as Kustomization

  /** The resources of a kustomization and of those that it includes, and the names of its config maps. */
  function resolve(directory: string): { resources: Resource[]; configMaps: string[] } {
    const { resources, configMapGenerator } = kustomizationOf(directory)
    for (const { files } of configMapGenerator)
      for (const file of files) expect(existsSync(join(root, 'deploy', directory, file)), file).toBe(true)
    const parts = resources.map((one) =>
      one.endsWith('.yaml')
        ? { resources: parseAllDocuments(read(`${directory}/${one}`)).map((one) => one.toJS()), configMaps: [] }
        : resolve(join(directory, one)),
    )
    return {
      resources: parts.flatMap((part) => part.resources),
      configMaps: [...configMapGenerator.map(({ name }) => name), ...parts.flatMap((part) => part.configMaps)],
    }
  }

  it('has valid settings, whose ports are those of the container and the Service', async () => {
    const env = { FLUXGATE_REDIS_URI: 'redis://redis.test', FLUXGATE_ADMIN_TOKEN: 'secret' }
    const { server } = await loadConfig({ path: join(root, 'deploy', base, 'fluxgate.yaml'), env, cwd: scratch })
    expect(server).toMatchObject({ port: 8090, grpcPort: 8081, grpcAuthentication: 'NONE' })
    const { resources } = resolve(base)
    const ofKind = (kind: string) => resources.find((one) => one.kind === kind)?.spec
    const [container] = ofKind('Deployment').template.spec.containers
    const ports = [
      ['api', server.port],
      ['grpc', server.grpcPort],
    ]
    expect(
      container.ports.map((one: { name: string; containerPort: number }) => [one.name, one.containerPort]),
    ).toEqual(ports)
    expect(ofKind('Service').ports.map((one: { name: string; port: number }) => [one.name, one.port])).toEqual(ports)
    expect(container.readinessProbe.httpGet).toEqual({ path: '/health/ready', port: 'api' })
    expect(unknownVariables(read(`${base}/deployment.yaml`))).toEqual([])
  })

  it.each(overlays)('%s uses existing names, and Envoy calls the port of the rate limit service', (directory) => {
    const { resources, configMaps } = resolve(directory)
    expect(configMaps.sort()).toEqual(['envoy', 'fluxgate'])
    const names = resources.map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    expect(new Set(names).size).toBe(names.length)
    for (const { kind, spec } of resources) {
      if (kind !== 'Deployment') continue
      const { metadata, spec: pod } = spec.template
      expect(metadata.labels).toMatchObject(spec.selector.matchLabels)
      for (const { configMap } of pod.volumes) expect(configMaps).toContain(configMap.name)
      const envoy = pod.containers.find((one: { name: string }) => one.name === 'envoy')
      if (envoy === undefined) continue
      expect(metadata.labels['fluxgate-client']).toBe('true')
      expect(envoy.ports.map((one: { containerPort: number }) => one.containerPort)).toEqual([8080, 9901])
    }
    const { admin, static_resources: envoy } = parse(read(`${directory}/envoy.yaml`))
    expect(admin.address.socket_address.port_value).toBe(9901)
    expect(envoy.listeners[0].address.socket_address.port_value).toBe(8080)
    // FluxGate sends X-RateLimit headers. With those of Envoy, each would be in the response twice.
    expect(read(`${directory}/envoy.yaml`)).not.toContain('enable_x_ratelimit_headers')
    const cluster = envoy.clusters.find((one: { name: string }) => one.name === 'fluxgate')
    const [{ endpoint }] = cluster.load_assignment.endpoints[0].lb_endpoints
    expect(endpoint.address.socket_address).toEqual({ address: 'fluxgate', port_value: 8081 })
    expect(names).toContain('Service fluxgate')
  })
})
