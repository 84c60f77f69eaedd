import { onTestFinished } from 'vitest'
import { RateLimitServer, type RateLimitServerOptions } from '../../../src/envoy/rate-limit-server.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import type { FluxGateOptions } from '../../../src/gate/options.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { clientOf } from './rate-limit-client.js'

/** Ten seconds after the start of a minute. */
export const startAt = 1_800_000_010_000

/** Starts a rate limit server in this process, with a gate on a manual clock. Both close after the test. */
export async function rateLimitServer(
  rules: NonNullable<FluxGateOptions['rules']>,
  options: Partial<RateLimitServerOptions> & { readonly gateOptions?: Partial<FluxGateOptions> } = {},
) {
  const clock = manualClock(startAt)
  const { gateOptions, ...serverOptions } = options
  const gate = await createFluxGate({ rules, clock, ...gateOptions })
  const server = new RateLimitServer({ gate, headers: 'both', ...serverOptions })
  onTestFinished(async () => {
    await server.close(0)
    await gate.close()
  })
  const { port } = await server.listen({ host: '127.0.0.1', port: 0 })
  return { clock, gate, server, port, ...clientOf(port) }
}
