import type { CollectedMetric } from '../metrics.js'

export const prometheusContentType = 'text/plain; version=0.0.4; charset=utf-8'

/** Renders metrics in the Prometheus text format, version 0.0.4, which has no exemplars. */
export function renderPrometheus(metrics: readonly CollectedMetric[]): string {
  const lines: string[] = []
  for (const { name, type, help, samples } of metrics) {
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`)
    for (const sample of samples) lines.push(`${sample.name}${labelText(sample.labels)} ${sample.value}`)
  }
  return `${lines.join('\n')}\n`
}

/** The labels of a sample in braces; empty without labels. */
export function labelText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

export const escaped = (value: string): string =>
  value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
