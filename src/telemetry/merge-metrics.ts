import { type MetricName, metricFamilies } from './metrics.js'

type Merge = (one: number, other: number) => number

/** Metrics that are not summed: states that all processes share, and states where the worst counts. */
const merges: Readonly<Record<string, Merge>> = {
  fluxgate_breaker_state: Math.max,
  fluxgate_rules: Math.max,
  fluxgate_store_up: Math.min,
} satisfies Partial<Record<MetricName, Merge>>

const sum: Merge = (one, other) => one + other

/** Merges the outputs of `renderMetrics` of several processes. */
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
    else series.set(name, (merges[family] ?? sum)(before, value))
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
