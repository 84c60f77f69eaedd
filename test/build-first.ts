import { execFileSync } from 'node:child_process'

/** Tests that run the built package must not run an old one, however the runner was started. */
export function setup(): void {
  execFileSync(process.execPath, ['scripts/bootstrap.mjs'], { stdio: 'inherit' })
}
