import type { Reporter, SerializedError, TestModule } from 'vitest/node'
import { mongoServer } from './bootstrap/mongo.mjs'

/**
 * Ends a run with `N passed, N failed` alone on a line, for programs that read results.
 * A file that could not be collected and an error outside of any test count as failures: both make the run fail.
 */
export const countReporter: Reporter = {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]) {
    const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0, pending: 0 }
    for (const module of modules) {
      for (const test of module.children.allTests()) counts[test.result().state]++
      const brokenSuites = [...module.children.allSuites()].filter((suite) => suite.errors().length > 0)
      counts.failed += brokenSuites.length + (module.errors().length > 0 ? 1 : 0)
    }
    if (mongoServer() === undefined && modules.some(({ moduleId }) => moduleId.includes('mongo')))
      console.log(`\nRules in MongoDB were not tested: there is no FLUXGATE_TEST_MONGO_URI, mongod or FerretDB.`)
    const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : ''
    // A test that never ended is not one that passed.
    console.log(`\n${counts.passed} passed, ${counts.failed + counts.pending} failed${skipped}`)
  },
}
