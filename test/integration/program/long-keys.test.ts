/** Clients choose keys, so everything that stores keys is bounded in bytes, not only in number. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

it('8000 keys of 15 000 bytes fit into a heap of 64 MiB', async () => {
  const program = fileURLToPath(new URL('long-keys.mjs', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, ['--max-old-space-size=64', program])
  expect(JSON.parse(stdout)).toEqual({ length: 8_000 })
})
