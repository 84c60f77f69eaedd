import { onTestFinished } from 'vitest'

/** Whatever was started for a test is stopped after it, also if it fails. */
export async function stopAfterTest<T extends { stop(): Promise<void> }>(starting: Promise<T>): Promise<T> {
  const started = await starting
  onTestFinished(() => started.stop())
  return started
}
