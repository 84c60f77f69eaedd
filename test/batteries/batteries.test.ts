/** A few seeds of every battery; `npm run batteries` runs more. */
import { spawnSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newSeed } from '../fixtures/run-options.js'
import { FrameworkBed } from './frameworks/framework-batteries.js'
import { describe as describeViolations } from './main.js'
import { GatewayBed, gatewayBatteries, launchGateway } from './run.js'

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
const seed = Number(process.env.FLUXGATE_BATTERIES_SEED ?? newSeed())
/** Two seeds that every run has in common, and one that is different each time. */
const seeds = [1, 2, seed]

describe(`batteries with FLUXGATE_BATTERIES_SEED=${seed}`, () => {
  let bed: GatewayBed
  beforeAll(async () => {
    bed = await GatewayBed.start(launchGateway(root))
  })
  afterAll(() => bed.stop())

  it.each(Object.keys(gatewayBatteries))('find nothing wrong: %s', { timeout: 600_000 }, async (name) => {
    for (const seed of seeds) {
      const { violations } = await bed.run(name, seed)
      expect(violations.length, describeViolations(name, seed, violations)).toBe(0)
    }
  })
})

describe(`frameworks with FLUXGATE_BATTERIES_SEED=${seed}`, () => {
  const bed = new FrameworkBed(root)
  afterAll(() => bed.stop())

  it('survive bodies, aborts, early responses and errors behind a slow limiter', { timeout: 600_000 }, async () => {
    for (const seed of seeds) {
      const { violations } = await bed.run('frameworks', seed)
      expect(violations.length, describeViolations('frameworks', seed, violations)).toBe(0)
    }
  })
})

describe('npm run batteries', () => {
  const batteries = (...args: string[]) =>
    spawnSync(process.execPath, [join(root, 'scripts', 'batteries.mjs'), ...args], { encoding: 'utf8' })

  it('explains its options', () => {
    expect(batteries('--help')).toMatchObject({ status: 0, stdout: expect.stringContaining('--seeds <n>') })
  })

  it('rejects a battery that does not exist', () => {
    const message = '--only must name valid, framing'
    expect(batteries('--only', 'x')).toMatchObject({ status: 2, stderr: expect.stringContaining(message) })
  })
})
