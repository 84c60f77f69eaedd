/** `fluxgate candidate` against a server with two workers that have buckets of their own. */
import { expect, it } from 'vitest'
import { tempWorkspace } from './running-program.js'

const ruleSet = (capacity: number) => ({
  id: 'api',
  rules: [{ id: 'per-ip', bands: [{ label: 'hour', capacity, window: '1h' }] }],
})

it('puts a candidate into all workers, adds up their reports, promotes and drops it', async () => {
  const workspace = tempWorkspace()
  workspace.write('rules.yaml', ruleSet(100))
  workspace.write('stricter.yaml', ruleSet(0))
  const server = await workspace.start(['serve', '--port', '0', '--workers', '2'])
  const run = async (...args: string[]) => {
    const running = workspace.launch(['candidate', ...args, '--server', server.api])
    return { status: await running.ended, stdout: running.stdout(), stderr: running.stderr() }
  }
  const missing = 'There is no candidate of rule set "api". Correct the id, or put a candidate first.\n'
  for (const command of ['get', 'report', 'promote', 'drop'])
    expect(await run(command, 'api'), command).toEqual({ status: 1, stdout: '', stderr: missing })
  expect(await run('put', 'api', 'stricter.yaml')).toEqual({
    status: 0,
    stdout: 'candidate of api created: 1 rule\n',
    stderr: '',
  })
  expect(JSON.parse((await run('get', 'api')).stdout)).toMatchObject({ candidateOf: 'api', rules: [{ id: 'per-ip' }] })

  // Without keep-alive, so that both workers take part.
  let checks = 0
  const check = async () => {
    checks += 1
    await fetch(`${server.api}/api/ratelimit/check`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Connection: 'close' },
      body: JSON.stringify({ clientIp: '192.0.2.1', path: '/' }),
    })
  }
  const report = async () => JSON.parse((await run('report', 'api', '--json')).stdout) as { decisions: number }
  await server.until('both workers compare', async () => {
    const before = await report()
    for (let i = 0; i < 10; i++) await check()
    return (await report()).decisions === before.decisions + 10
  })
  const { decisions } = await report()
  expect(decisions).toBeLessThanOrEqual(checks)
  expect(await report()).toMatchObject({ rejectedNowOnly: 0, rejectedThenOnly: decisions })
  expect((await run('report', 'api')).stdout).toMatch(
    new RegExp(
      `^rule set api: ${decisions} decisions compared since .*\\n\\nrejected by .*\\n.*\\nall +0 +0 +${decisions}\\n`,
    ),
  )

  const promoted = await run('promote', 'api', '--json')
  expect(JSON.parse(promoted.stdout)).toMatchObject({ id: 'api', rules: [{ bands: [{ capacity: 0 }] }] })
  expect((await run('report', 'api')).status).toBe(1)
  await run('put', 'api', 'stricter.yaml')
  expect(await run('drop', 'api')).toMatchObject({ status: 0, stdout: 'candidate of api removed\n' })
  expect((await run('drop', 'api')).status).toBe(1)
})
