import { defineConfig } from 'vitest/config'
import { countReporter } from './scripts/count-reporter.js'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    reporters: ['default', countReporter],
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
