import { builtinModule } from '../runtime/builtin-module.js'

/** The parts of `@opentelemetry/api` that are used. The package is an optional peer, so its types are not imported. */
export interface OpenTelemetryApi {
  readonly trace: { getActiveSpan(): ActiveSpan | undefined }
  readonly context: { active(): object; with<T>(context: object, fn: () => T): T }
  readonly propagation: { inject(context: object, carrier: Record<string, string>): void; fields(): string[] }
  readonly metrics: { getMeterProvider(): MeterProvider }
}

export interface ActiveSpan {
  isRecording(): boolean
  spanContext(): { readonly traceId: string; readonly spanId: string; readonly traceFlags: number }
  addEvent(name: string, attributes: Record<string, string | number | boolean | string[]>): unknown
}

export interface MeterProvider {
  getMeter(name: string): Meter
}

export interface Meter {
  createHistogram(
    name: string,
    options: InstrumentOptions & { readonly advice: { readonly explicitBucketBoundaries: number[] } },
  ): { record(value: number): void }
  createObservableCounter(name: string, options: InstrumentOptions): object
  createObservableGauge(name: string, options: InstrumentOptions): object
  addBatchObservableCallback(
    callback: (result: {
      observe(instrument: object, value: number, attributes: Readonly<Record<string, string>>): void
    }) => Promise<void>,
    instruments: object[],
  ): void
}

interface InstrumentOptions {
  readonly description: string
  readonly unit?: string
}

/** The property in which version 1 of the API keeps what an SDK has registered. */
const registry = Symbol.for('opentelemetry.js.api.1')

let loaded: OpenTelemetryApi | null | undefined

/**
 * The API of OpenTelemetry if an SDK is registered in this process, else undefined. Without an SDK the package is not loaded,
 * even if it is installed. It is loaded once, with `require`: limiters are created synchronously, and bundlers must not
 * include it.
 */
export function openTelemetryApi(): OpenTelemetryApi | undefined {
  if (!(registry in globalThis)) return undefined
  if (loaded === undefined) loaded = loadApi() ?? null
  return loaded ?? undefined
}

/** True if an SDK is registered, but the API cannot be loaded from here: it must be installed next to this package. */
export const isOpenTelemetryMissing = (): boolean => registry in globalThis && openTelemetryApi() === undefined

/** Resolved from this module, and from the main module of a program that is bundled to a single file. */
function loadApi(): OpenTelemetryApi | undefined {
  const createRequire = builtinModule('node:module')?.createRequire
  if (createRequire === undefined) return undefined
  for (const from of [import.meta.url, globalThis.process.argv[1]]) {
    try {
      const api = createRequire(from as string)('@opentelemetry/api') as Partial<OpenTelemetryApi>
      if (isApi(api)) return api
    } catch {}
  }
  return undefined
}

/** False for versions before 1.4, which have no `getActiveSpan` and metrics. */
const isApi = (api: Partial<OpenTelemetryApi>): api is OpenTelemetryApi =>
  [api.trace?.getActiveSpan, api.metrics?.getMeterProvider, api.propagation?.inject].every(
    (one) => typeof one === 'function',
  )

/** True if the span is recorded and will be exported. */
export const isSampled = (span: ActiveSpan | undefined): span is ActiveSpan =>
  span?.isRecording() === true && (span.spanContext().traceFlags & 1) === 1
