/** Routes of this server, from its OpenAPI document. Parts of a page appear only if their routes exist. */
import { signal } from '@preact/signals'
import { get } from './api.js'

const features = signal<ReadonlySet<string>>(new Set())
export const version = signal('')

interface OpenApi {
  readonly info?: { readonly version?: string }
  readonly paths?: Readonly<Record<string, object>>
}

export async function loadFeatures(): Promise<void> {
  const { info, paths = {} } = await get<OpenApi>('/openapi.json')
  version.value = info?.version ?? ''
  features.value = new Set(
    Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    ),
  )
}

/** `hasRoute('POST /api/ratelimit/explain')`. An empty name is a route of every server. */
export const hasRoute = (name: string): boolean => name === '' || features.value.has(name)
