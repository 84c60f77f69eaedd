/** A worker exits while the primary sends to it: the primary and the other workers survive. */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { eventually } from '../../fixtures/eventually.js'
import { freePort } from '../../servers/free-port.js'

it('the primary survives messages to a worker that has just exited, and replaces it', async () => {
  const port = await freePort()
  const program = fileURLToPath(new URL('worker-loss.mjs', import.meta.url))
  const primary = fork(program, [String(port)], { execArgv: [] })
  onTestFinished(() => void primary.kill('SIGKILL'))
  const heard: unknown[] = []
  primary.on('message', (message) => heard.push(message))
  await eventually('ready', () => heard.includes('ready'))
  primary.send('end one')
  await eventually('the loss is reported', () => heard.includes('lost') && heard.includes('survived'))
  const workers = new Map<number, unknown>()
  await eventually('the new worker and the old one respond', async () => {
    const { worker, ids } = (await (await fetch(`http://127.0.0.1:${port}`)).json()) as { worker: number; ids: string }
    workers.set(worker, ids)
    return workers.has(2) && workers.has(3)
  })
  // A value that fails is omitted and does not end its worker.
  expect(workers.get(3)).toBe('3')
  expect([primary.exitCode, primary.signalCode]).toEqual([null, null])
})
