import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The slowest files, slowest first. If they did not start first, one of them would run alone at the end. */
const slowest = [
  'test/bench.test.ts',
  'test/integration/redis-store/clients.test.ts',
  'test/e2e/cli.test.ts',
  'test/e2e/rules.test.ts',
  'test/e2e/start.test.ts',
  'test/integration/redis-failure/outages.test.ts',
  'test/e2e/gateway.test.ts',
  'test/integration/redis-store/load.test.ts',
  'test/bootstrap.test.ts',
  'test/e2e/serve.test.ts',
  'test/integration/redis-store/contract.test.ts',
  'test/integration/leases/processes.test.ts',
  'test/integration/overrides/cluster.test.ts',
  'test/docs.test.ts',
  'test/integration/search-index/crashes.test.ts',
  'test/integration/lock/exclusion.test.ts',
]

/**
 * Slow files first and unit tests last, because short files fill the workers evenly at the end. Unit tests stay together,
 * because a worker is reused only between consecutive unit tests.
 */
export class TestOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted
      .map((file, index) => ({ file, index, rank: rankOf(file) }))
      .sort((a, b) => a.rank - b.rank || a.index - b.index)
      .map(({ file }) => file)
  }
}

function rankOf({ moduleId, project }: TestSpecification): number {
  if (project.name === 'unit') return slowest.length + 1
  const place = slowest.findIndex((name) => moduleId.endsWith(`/${name}`))
  return place === -1 ? slowest.length : place
}
