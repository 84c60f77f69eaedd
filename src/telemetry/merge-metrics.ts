import { type MetricName, metricFamilies } from './metrics.js'

/** These say how something stands that all processes share, or of which the worst is what matters; all others add up. */
const greatest: ReadonlySet<string> = new Set<MetricName>(['fluxgate_breaker_state', 'fluxgate_rules'])

/** The metrics of several processes as those of one. Takes what `renderMetrics` gives. */
export function mergeMetrics(texts: readonly string[]): string {
  const series = new Map<string, number>()
  for (const line of texts.flatMap((text) => text.split('\n'))) {
    const space = line.lastIndexOf(' ')
    if (line === '' || line.startsWith('#')) continue
    const name = line.slice(0, space)
    const value = Number(line.slice(space + 1))
    const before = series.get(name)
    const [family = ''] = /^\w+/.exec(name) ?? []
    if (before === undefined) series.set(name, value)
    else series.set(name, greatest.has(family) ? Math.max(before, value) : before + value)
  }
  const lines = Object.entries(metricFamilies).flatMap(([family, { type, help }]) => [
    `# HELP ${family} ${help}`,
    `# TYPE ${family} ${type}`,
    ...[...series].filter(([name]) => isOf(family, type, name)).map(([name, value]) => `${name} ${value}`),
  ])
  return `${lines.join('\n')}\n`
}

function isOf(family: string, type: string, name: string): boolean {
  const [own = ''] = /^\w+/.exec(name) ?? []
  return own === family || (type === 'histogram' && /^_(bucket|sum|count)$/.test(own.slice(family.length)))
}
