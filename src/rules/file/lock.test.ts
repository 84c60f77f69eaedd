import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { removeLock, withFileLock } from './lock.js'

let directory: string
let lock: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'fluxgate-'))
  lock = join(directory, 'rules.yaml.lock')
})
afterEach(() => rm(directory, { recursive: true, force: true }))

// The pid is above the maximum of Linux, so no such process exists.
const dead = JSON.stringify({ pid: 2 ** 30, host: hostname(), token: '0' })

it('is taken over from a process that has died', async () => {
  await writeFile(lock, dead)
  await withFileLock(lock, async () => expect(await readFile(lock, 'utf8')).not.toBe(dead))
  expect(await readdir(directory)).toEqual([])
})

it('is not taken from the process that was the first to take it over', async () => {
  const live = JSON.stringify({ pid: process.pid, host: hostname(), token: '1' })
  await writeFile(lock, live)
  await removeLock(lock, dead)
  expect(await readFile(lock, 'utf8')).toBe(live)
  await removeLock(lock, live)
  expect(await readdir(directory)).toEqual([])
})
