import { defineConfig } from 'vitest/config'
import { countReporter } from './scripts/count-reporter.js'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    globalSetup: ['test/build-first.ts', 'test/servers/shared-redis-setup.ts'],
    // One worker per core: many tests wait for child processes, so the default of one core less would idle on small machines.
    maxWorkers: '100%',
    reporters: ['default', countReporter],
    // Only for tests that hang: what a test awaits depends on how fast the machine is, and how busy.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
  },
})
