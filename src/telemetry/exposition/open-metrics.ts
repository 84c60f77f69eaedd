import type { Exemplar } from '../exemplar.js'
import type { CollectedMetric } from '../metrics.js'
import { escaped, labelText } from './prometheus-text.js'

export const openMetricsContentType = 'application/openmetrics-text; version=1.0.0; charset=utf-8'

/** Renders metrics in the OpenMetrics format, version 1.0.0, with exemplars. */
export function renderOpenMetrics(metrics: readonly CollectedMetric[]): string {
  const lines: string[] = []
  for (const { name, type, help, samples } of metrics) {
    // The samples of a counter have a suffix that the name of its family has not.
    const family = type === 'counter' ? name.replace(/_total$/, '') : name
    lines.push(`# TYPE ${family} ${type}`)
    if (family.endsWith('_seconds')) lines.push(`# UNIT ${family} seconds`)
    lines.push(`# HELP ${family} ${escaped(help)}`)
    for (const sample of samples) {
      const labels = labelText(withCanonicalBound(sample.labels))
      lines.push(`${sample.name}${labels} ${sample.value}${exemplarText(sample.exemplar)}`)
    }
  }
  lines.push('# EOF')
  return `${lines.join('\n')}\n`
}

/** The bounds of buckets are labels, so all producers must write equal numbers in the same way. */
const withCanonicalBound = (labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  labels.le === undefined || labels.le === '+Inf' ? labels : { ...labels, le: canonicalNumber(Number(labels.le)) }

/** A number as Go's `%g` writes it, with a decimal point or an exponent of at least two digits. */
function canonicalNumber(value: number): string {
  if (value !== 0 && Math.abs(value) < 1e-4) return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2')
  return Number.isInteger(value) ? `${value}.0` : String(value)
}

function exemplarText(exemplar: Exemplar | undefined): string {
  if (exemplar === undefined) return ''
  const { traceId, spanId, value, at } = exemplar
  return ` # {trace_id="${traceId}",span_id="${spanId}"} ${value} ${at / 1_000}`
}
