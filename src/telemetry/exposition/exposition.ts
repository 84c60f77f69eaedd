import type { CollectedMetric } from '../metrics.js'
import { openMetricsContentType, renderOpenMetrics } from './open-metrics.js'
import { prometheusContentType, renderPrometheus } from './prometheus-text.js'

/** A format of `/metrics`. */
export type MetricsFormat = 'PROMETHEUS' | 'OPENMETRICS'

export const metricsFormats: readonly MetricsFormat[] = ['PROMETHEUS', 'OPENMETRICS']

export const contentTypes: Readonly<Record<MetricsFormat, string>> = {
  PROMETHEUS: prometheusContentType,
  OPENMETRICS: openMetricsContentType,
}

export const renderMetrics = (metrics: readonly CollectedMetric[], format: MetricsFormat = 'PROMETHEUS'): string =>
  format === 'OPENMETRICS' ? renderOpenMetrics(metrics) : renderPrometheus(metrics)

/** OpenMetrics only if the client names it and does not prefer the text format. */
export function negotiateFormat(accept: string | undefined): MetricsFormat {
  let openMetrics = 0
  let text = 0
  for (const item of (accept ?? '').toLowerCase().split(',')) {
    const [type, ...parameters] = item.split(';').map((part) => part.trim())
    const weight = weightOf(parameters)
    if (type === 'application/openmetrics-text' && isSupported(parameters)) openMetrics = Math.max(openMetrics, weight)
    else if (type === 'text/plain') text = Math.max(text, weight)
  }
  return openMetrics > 0 && openMetrics >= text ? 'OPENMETRICS' : 'PROMETHEUS'
}

function weightOf(parameters: readonly string[]): number {
  const q = parameterOf('q', parameters)
  if (q === undefined) return 1
  return /^(?:0(?:\.\d*)?|1(?:\.0*)?)$/.test(q) ? Number(q) : 0
}

const isSupported = (parameters: readonly string[]): boolean =>
  ['1.0.0', undefined].includes(parameterOf('version', parameters))

function parameterOf(name: string, parameters: readonly string[]): string | undefined {
  const found = parameters.find((parameter) => parameter.startsWith(`${name}=`))
  return found?.slice(name.length + 1).replace(/^"(.*)"$/, '$1')
}
