// @ts-check
/** Step: redis-server is on the PATH, for tests and benchmarks. */
import { aptStep } from './apt.mjs'

export const redis = aptStep({
  program: 'redis-server',
  missing: 'Tests and benchmarks start real Redis servers, but redis-server is not on the PATH.',
  elsewhere: 'Install Redis 7 (on a Mac: "brew install redis")',
  // The package enables its service, which would start with the system.
  after: 'if [ -d /run/systemd/system ]; then systemctl disable --now redis-server; fi',
})
