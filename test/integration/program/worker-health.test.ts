/** Health of workers that share a port: each responds for all. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { eventually } from '../../fixtures/eventually.js'
import { freePort } from '../../servers/free-port.js'

it('every worker reports a store that is down in one of them, and topics are separate', async () => {
  const port = await freePort()
  const program = fileURLToPath(new URL('worker-health.mjs', import.meta.url))
  const primary: ChildProcess = fork(program, [String(port)], { execArgv: [] })
  onTestFinished(() => void primary.kill('SIGKILL'))
  await once(primary, 'message')
  const answers = new Map<number, unknown>()
  await eventually('all workers have answered', async () => {
    const { worker, ...answer } = (await (await fetch(`http://127.0.0.1:${port}`)).json()) as { worker: number }
    answers.set(worker, answer)
    return answers.size === 3
  })
  const health = { status: 'DEGRADED', store: { status: 'DOWN', sinceAt: 2, error: 'no connection' } }
  for (const answer of answers.values()) expect(answer).toMatchObject({ ids: '1,2,3', health })
})
