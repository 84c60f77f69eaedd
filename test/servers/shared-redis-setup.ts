import { execFileSync } from 'node:child_process'
import type { TestProject } from 'vitest/node'
import { startRedis } from './redis-server.js'

/** Starts one server for the whole run. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  execFileSync(process.execPath, ['scripts/bootstrap.mjs', 'redis'], { stdio: 'inherit' })
  const server = await startRedis()
  project.provide('sharedRedisPort', server.port)
  return server.stop
}
