import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { countReporter } from './scripts/count-reporter.js'
import { TestOrder } from './scripts/test-order.js'

export default defineConfig({
  test: {
    // More workers than cores: many tests wait for child processes and timers.
    maxWorkers: Math.ceil(availableParallelism() * 2),
    reporters: ['default', countReporter],
    sequence: { sequencer: TestOrder },
    // Only for tests that hang: what a test awaits depends on how fast the machine is, and how busy.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    projects: [
      {
        extends: true,
        // Unit tests change nothing outside of their own objects, so they share the modules of a worker.
        test: { name: 'unit', include: ['src/**/*.test.ts'], isolate: false },
      },
      {
        extends: true,
        test: {
          name: 'system',
          include: ['test/**/*.test.ts'],
          globalSetup: ['test/build-first.ts', 'test/servers/shared-redis-setup.ts'],
        },
      },
    ],
  },
})
