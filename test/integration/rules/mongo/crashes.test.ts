import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { MongoClient } from 'mongodb'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createFluxGate } from '../../../../src/gate/create-flux-gate.js'
import { mongoRuleStore } from '../../../../src/mongo.js'
import { eventually } from '../../../fixtures/eventually.js'
import { stopAfterTest } from '../../../fixtures/stop-after-test.js'
import { mongoKind, openMongo, startMongo } from '../../../servers/mongo-server.js'

const by = 'ann'
const freshName = (): string => `fluxgate_${randomBytes(6).toString('hex')}`
const rule = (capacity: number) => ({ id: 'a', limitScope: 'GLOBAL', bands: [{ capacity, window: '1h' }] })

describe.skipIf(mongoKind === undefined)(
  'rules in MongoDB, with crashes of processes and servers',
  { timeout: 120_000 },
  () => {
    let server: Awaited<ReturnType<typeof openMongo>>
    let client: MongoClient
    beforeAll(async () => {
      server = await openMongo()
      client = new MongoClient(server.uri)
    })
    afterAll(async () => {
      await client?.close()
      await server?.stop()
    })

    /** Runs an editor that is killed at a random moment; resolves with the last version that it confirmed. */
    async function killedEditor(database: string): Promise<number> {
      const program = ['test/integration/rules/mongo/editor.mjs', server.uri, database]
      const child = spawn(process.execPath, program, { stdio: ['ignore', 'pipe', 'inherit'] })
      let answered = 0
      let version = 0
      createInterface(child.stdout).on('line', (line) => {
        version = Number(line)
        answered += 1
        if (answered === 3) setTimeout(() => child.kill('SIGKILL'), Math.random() * 50)
      })
      await once(child, 'close')
      return version
    }

    it('an editor killed during an edit leaves a complete rule set, and no confirmed edit is lost', async () => {
      const database = freshName()
      const reader = mongoRuleStore(client, { database })
      for (let round = 1; round <= 3; round++) {
        const versions = await Promise.all([killedEditor(database), killedEditor(database)])
        const [set] = await reader.load()
        const names = new Set(set?.rules.map(({ name }) => name))
        expect([set?.rules.length, names.size]).toEqual([10, 1])
        const { version = 0 } = (await reader.getRuleSet('api')) ?? {}
        expect(version).toBeGreaterThanOrEqual(Math.max(...versions))
      }
      // Unfinished work is completed before the next edit, and every change is in the history.
      const { document } = await reader.putRuleSet({ id: 'api', rules: [rule(1)] }, { by })
      const seen: number[] = []
      for (let cursor: string | undefined; ; ) {
        const page = await reader.history('api', { limit: 100, cursor })
        seen.push(...page.items.map(({ version }) => version))
        if (page.cursor === null) break
        cursor = page.cursor
      }
      expect(seen).toEqual(Array.from({ length: document.version }, (_, i) => document.version - i))
      expect(await client.db(database).collection('rate_limit_rules').countDocuments()).toBe(1)
      await client.db(database).dropDatabase()
    })

    it('a gate applies them at once, applies external edits after a poll, and reports its reload strategy', async () => {
      const database = freshName()
      const rules = mongoRuleStore(client, { database })
      await rules.putRuleSet({ id: 'api', rules: [rule(5)] }, { by })
      const gate = await createFluxGate({ rules, reload: { pollingIntervalMs: 20 } })
      onTestFinished(async () => {
        await gate.close()
        await client.db(database).dropDatabase()
      })
      expect((await gate.check({})).limit).toBe(5)
      if (mongoKind !== 'uri')
        expect(await gate.health()).toMatchObject({ rules: { reload: mongoKind === 'mongod' ? 'WATCH' : 'POLLING' } })
      await rules.putRule('api', rule(7), { by })
      expect((await gate.check({})).limit).toBe(7)
      await client
        .db(database)
        .collection('rate_limit_rules')
        .updateOne({ id: 'a' }, { $set: { 'bands.0.capacity': 9 } })
      await eventually('the manual edit is applied', async () => (await gate.check({})).limit === 9)
    })

    it.skipIf(mongoKind === 'uri')(
      'a server that goes down leaves the rules in effect, and is used again after it recovers',
      async () => {
        const own = await stopAfterTest(startMongo())
        const store = mongoRuleStore(`${own.uri}${own.uri.includes('?') ? '&' : '?'}serverSelectionTimeoutMS=500`)
        await store.putRuleSet({ id: 'api', rules: [rule(5)] }, { by })
        const gate = await createFluxGate({ rules: store, reload: { strategy: 'POLLING', pollingIntervalMs: 20 } })
        onTestFinished(async () => {
          await gate.close()
          await store.close()
        })
        await own.kill()
        await eventually('health is DEGRADED', async () => (await gate.health()).status === 'DEGRADED')
        expect((await gate.check({})).limit).toBe(5)
        await expect(store.putRule('api', rule(6), { by })).rejects.toMatchObject({ code: 'FLUXGATE_RULES_UNREADABLE' })
        await own.restart()
        await eventually('health is UP', async () => (await gate.health()).status === 'UP')
        await store.putRule('api', rule(7), { by })
        expect((await gate.check({})).limit).toBe(7)
      },
    )
  },
)
