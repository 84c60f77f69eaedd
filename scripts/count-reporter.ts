import type { Reporter, SerializedError, TestModule } from 'vitest/node'
import { mongoServer } from './bootstrap/mongo.mjs'

/**
 * Prints `N passed, N failed` on a separate line at the end of a run, for programs that parse the results. Files that could
 * not be collected and errors outside of tests count as failures, because both fail the run.
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
      console.log(
        '\nRules in MongoDB were not tested. Set FLUXGATE_TEST_MONGO_URI, or install mongod or Go (to build FerretDB).',
      )
    const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : ''
    // A test that did not finish counts as failed.
    console.log(`\n${counts.passed} passed, ${counts.failed + counts.pending} failed${skipped}`)
  },
}
