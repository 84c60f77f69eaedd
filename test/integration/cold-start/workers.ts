/** Child processes: workers that exit with a report, and busy loops that consume CPU time. */
import { execFile, spawn } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

const here = dirname(fileURLToPath(import.meta.url))

/**
 * Runs a program of this folder to completion, with `settings` as its JSON argument. Resolves with the JSON report that
 * it prints.
 */
export function runWorker<Report>(program: string, settings: object): Promise<Report> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      process.execPath,
      [join(here, program), JSON.stringify(settings)],
      (error, stdout, stderr) =>
        error ? reject(new Error(`${program} failed: ${stderr}`, { cause: error })) : resolve(JSON.parse(stdout)),
    )
    onTestFinished(() => void child.kill('SIGKILL'))
  })
}

/** Ends by itself, so it cannot outlive a killed test run. */
const busyLoop = 'const endsAt = Date.now() + 120_000; while (Date.now() < endsAt);'

/** Keeps `count` cores busy until the test finishes. */
export function burnCpu(count: number): void {
  for (let i = 0; i < count; i++) {
    const child = spawn(process.execPath, ['-e', busyLoop], { stdio: 'ignore' })
    onTestFinished(() => void child.kill('SIGKILL'))
  }
}
