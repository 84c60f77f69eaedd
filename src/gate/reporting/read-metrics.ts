/** Reads the metrics of a gate. The renderer is loaded at first use. */
import { FluxGateError } from '../../core/errors.js'
import type { MetricsFormat } from '../../telemetry/exposition/exposition.js'
import type { GateMetrics } from '../../telemetry/gate-metrics.js'
import type { CollectedMetric } from '../../telemetry/metrics.js'

/** The metrics as text. */
export async function renderGateMetrics(metrics: GateMetrics | undefined, format: MetricsFormat): Promise<string> {
  const { metricsFormats, renderMetrics } = await import('../../telemetry/exposition/exposition.js')
  if (!metricsFormats.includes(format))
    throw new FluxGateError(
      'FLUXGATE_ARGUMENT_INVALID',
      `format must be ${metricsFormats.join(' or ')}; received ${JSON.stringify(format)}.`,
    )
  return renderMetrics(await collectGateMetrics(metrics), format)
}

export async function collectGateMetrics(metrics: GateMetrics | undefined): Promise<readonly CollectedMetric[]> {
  const { collectMetrics } = await import('../../telemetry/metrics.js')
  return collectMetrics(await requireMetrics(metrics).source())
}

export function requireMetrics(metrics: GateMetrics | undefined): GateMetrics {
  if (metrics !== undefined) return metrics
  throw new FluxGateError(
    'FLUXGATE_CONFIG_INVALID',
    'This gate collects no metrics. Create it with metrics: true in the options of createFluxGate.',
  )
}
