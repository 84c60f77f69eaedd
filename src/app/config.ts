import type { FluxGateOptions } from './gate-options.js'

export async function readGateOptions(options: FluxGateOptions): Promise<FluxGateOptions> {
  return options
}
