import { randomBytes } from 'node:crypto'
import { Long, MongoClient, ObjectId } from 'mongodb'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../../src/core/clock.js'
import type { RuleStore } from '../../../../src/core/contracts/rule-store.js'
import { finish } from '../../../../src/core/scheduling/steps.js'
import { mongoRuleStore } from '../../../../src/mongo.js'
import { createHead } from '../../../../src/rules/mongo/head.js'
import { MongoStorage } from '../../../../src/rules/mongo/storage.js'
import { createRuleStore } from '../../../../src/rules/store/create-rule-store.js'
import { planPutRuleSet } from '../../../../src/rules/store/plan-edit.js'
import { manualClock } from '../../../../src/testing/index.js'
import { ruleStoreContract } from '../../../../src/testing/rule-stores/contract.js'
import { eventually } from '../../../fixtures/eventually.js'
import { mongoKind, openMongo } from '../../../servers/mongo-server.js'

interface Loose {
  _id: string | ObjectId
  [name: string]: unknown
}

const by = 'ann'
const bands = [{ capacity: 10, window: '1m' }]

// FerretDB stores everything on disk, so tests with many edits take long on a busy machine.
describe.skipIf(mongoKind === undefined)('rules in MongoDB', { timeout: 120_000 }, () => {
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

  ruleStoreContract(
    it,
    (clock) => {
      const database = freshName()
      return {
        open: () => mongoRuleStore(client, { database, clock }),
        remove: async () => void (await client.db(database).dropDatabase()),
      }
    },
    { notices: mongoKind === 'mongod' },
  )

  describe('as documents', () => {
    let database: string
    let store: RuleStore
    const rules = () => client.db(database).collection<Loose>('rate_limit_rules')
    const clock = manualClock(Date.UTC(2026, 0, 31, 12))
    beforeEach(() => {
      database = freshName()
      store = mongoRuleStore(client, { database, clock })
      return () => client.db(database).dropDatabase()
    })

    it('a rule is one document with its own fields, in the documented collection', async () => {
      const attributes = { owner: 'ann', limits: [1, 2.5] }
      const rule = {
        id: 'login',
        priority: 5,
        path: '/login',
        bands: [{ capacity: 10, windowSeconds: 60 }],
        attributes,
      }
      await store.putRuleSet({ id: 'api', rules: [rule] }, { by })
      expect(await rules().find().toArray()).toEqual([
        {
          ...{ _id: 'api/login', ruleSetId: 'api', ...rule, version: 1 },
          ...{ createdAt: '2026-01-31T12:00:00.000Z', updatedAt: '2026-01-31T12:00:00.000Z' },
        },
      ])
    })

    it('the indexes are created on first use', async () => {
      await store.load()
      const keys = (await rules().indexes()).map(({ key }) => key)
      expect(keys).toEqual([{ _id: 1 }, { ruleSetId: 1, enabled: 1 }, { ruleSetId: 1, priority: -1 }])
      // Again, as by a second process.
      await mongoRuleStore(client, { database }).load()
    })

    it('values that not every MongoDB server preserves are stored as text', async () => {
      const when = { 'attributes.tier': 'premium' }
      const attributes = JSON.parse('{"$a":1,"__proto__":{"x":[[1],[]]},"nul":"\\u0000"}')
      await store.putRuleSet({ id: 'api', rules: [{ id: 'a', when, attributes, bands }] }, { by })
      expect(await rules().findOne()).toMatchObject({
        when: null,
        attributes: null,
        asJson: { when: '{"attributes.tier":"premium"}', attributes: JSON.stringify(attributes) },
      })
      const found = await store.getRule('api', 'a')
      expect(JSON.stringify(found?.attributes)).toBe(JSON.stringify(attributes))
      expect(Object.keys(found ?? {}).slice(0, 4)).toEqual(['id', 'when', 'attributes', 'bands'])
      // A direct edit of the field wins.
      await rules().updateOne({ _id: 'api/a' }, { $set: { attributes: { plain: 1 } } })
      expect((await store.getRule('api', 'a'))?.attributes).toEqual({ plain: 1 })
    })

    it('documents of other programs are read: other spellings, ids, and number and date types', async () => {
      await rules().insertMany([
        {
          ...{ _id: 'spring', ruleSetId: 'api', _class: 'com.example.Rule', name: null, enabled: true },
          ...{ scope: 'PER_USER', onLimitExceedPolicy: 'REJECT_REQUEST', createdAt: new Date(0) },
          bands: [{ label: 'min', windowSeconds: Long.fromNumber(60), capacity: 100 }],
        },
        {
          _id: new ObjectId(),
          ruleSetId: 'api',
          id: 'by-id',
          limitScope: 'IP',
          bands: [{ capacity: 1, window: '1s' }],
        },
      ])
      const [set] = await store.load()
      expect(set?.rules.map(({ id }) => id).sort()).toEqual(['by-id', 'spring'])
      expect(set?.rules.find(({ id }) => id === 'spring')).toMatchObject({
        ...{ limitScope: 'USER_ID', policy: 'REJECT', createdAt: '1970-01-01T00:00:00.000Z', version: 1 },
        bands: [{ label: 'min', capacity: 100, windowTicks: 60_000_000 }],
      })
    })

    it('an edited external document is one document afterwards, under its usual id', async () => {
      await rules().insertOne({ _id: new ObjectId(), ruleSetId: 'api', id: 'a', bands })
      await rules().insertOne({ _id: 'b', ruleSetId: 'api', bands })
      await store.putRule('api', { id: 'a', name: 'new', bands }, { by, ifVersion: 1 })
      await store.deleteRule('api', 'b', { by })
      expect(await rules().find().toArray()).toMatchObject([{ _id: 'api/a', name: 'new', version: 2 }])
    })

    it('a manual edit is a version with a history entry, and a concurrent editor cannot overwrite it', async () => {
      await store.putRuleSet(
        {
          id: 'api',
          rules: [
            { id: 'a', bands },
            { id: 'b', bands },
            { id: 'c', bands },
          ],
        },
        { by },
      )
      const seen = await store.getRule('api', 'a')
      await rules().updateOne({ _id: 'api/a' }, { $set: { enabled: false } })
      await rules().deleteOne({ _id: 'api/b' })
      await expect(
        store.putRule('api', { id: 'a', name: 'x', bands }, { by, ifVersion: Number(seen?.version) }),
      ).rejects.toMatchObject({ code: 'FLUXGATE_RULES_CONFLICT' })
      expect(await store.getRule('api', 'a')).toMatchObject({ enabled: false, version: 2 })
      expect(await store.getRuleSet('api')).toMatchObject({ version: 2, rules: [{ id: 'a' }, { id: 'c', version: 1 }] })
      const [entry] = (await store.history('api', { limit: 1 })).items
      expect(entry).toMatchObject({
        by: 'outside',
        action: 'PUT_SET',
        version: 2,
        after: { rules: [{ id: 'a' }, { id: 'c' }] },
      })
      // A second edit gets a separate version.
      await rules().updateOne({ _id: 'api/a' }, { $set: { enabled: true } })
      expect((await store.getRule('api', 'a'))?.version).toBe(3)
      expect((await store.putRule('api', { id: 'b', bands }, { by })).document.version).toBe(3)
    })

    it('a document without a rule set is reported, and the others are loaded', async () => {
      await store.putRuleSet({ id: 'api', rules: [] }, { by })
      await rules().insertOne({ _id: 'stray' })
      const errors = [{ path: 'stray.ruleSetId', message: 'must be the id of a rule set; received nothing' }]
      await expect(store.load()).rejects.toMatchObject({ code: 'FLUXGATE_RULES_INVALID', errors })
      expect((await store.getRuleSet('api'))?.version).toBe(1)
    })

    it('the last 1000 changes are kept', async () => {
      await store.putRuleSet({ id: 'api', rules: [] }, { by })
      const sets = client.db(database).collection<Loose>('rate_limit_rules_sets')
      const head = await sets.findOne()
      await sets.insertOne({ ...head, _id: 'api/1000', version: 1_000 })
      const versions = async () => (await store.history('api', { limit: 10 })).items.map(({ version }) => version)
      expect(await versions()).toEqual([1])
      await store.putRuleSet({ id: 'api', description: 'x', rules: [] }, { by })
      expect(await versions()).toEqual([1_001])
    })
  })

  describe('with an incomplete change', () => {
    it('readers see all of it, and the next editor completes it first', async () => {
      const database = client.db(freshName())
      const options = { connect: async () => database, disconnect: async () => {}, source: 'MongoDB' }
      const storage = new MongoStorage({ ...options, collection: 'r', clock: systemClock, abandonedMs: 50 })
      const store = createRuleStore(storage)
      await store.putRuleSet(
        {
          id: 'api',
          rules: [
            { id: 'a', bands },
            { id: 'b', bands },
          ],
        },
        { by },
      )
      // The state that an editor leaves if it dies right after committing the change.
      const stored = await storage.read('api')
      const wanted = {
        id: 'api',
        description: 'new',
        rules: [
          { id: 'a', name: 'new', bands },
          { id: 'c', bands },
        ],
      }
      const planning = { ruleSetId: 'api', stored, edit: { by: 'gone' }, at: '2026-01-31T12:00:00.000Z' }
      const change = finish(planPutRuleSet(planning, wanted)) ?? expect.unreachable()
      await database.collection('r_sets').insertOne(finish(createHead(change)) as never)
      const ids = async () =>
        (await database.collection('r').find().sort({ _id: 1 }).toArray()).map(({ _id }) => String(_id))
      expect(await ids()).toEqual(['api/a', 'api/b'])
      const [set] = await store.load()
      expect(set).toMatchObject({ description: 'new', rules: [{ id: 'a', name: 'new', version: 2 }, { id: 'c' }] })
      await store.putRule('api', { id: 'd', bands }, { by })
      expect(await ids()).toEqual(['api/a', 'api/c', 'api/d'])
      expect((await store.history('api', { limit: 10 })).items.map((entry) => entry.by)).toEqual([by, 'gone', by])
      expect((await store.getRuleSet('api'))?.version).toBe(3)
      await database.dropDatabase()
    })

    it('readers complete it too if its editor is gone', async () => {
      const database = client.db(freshName())
      const options = { connect: async () => database, disconnect: async () => {}, source: 'MongoDB' }
      const storage = new MongoStorage({ ...options, collection: 'r', clock: systemClock, abandonedMs: 10 })
      const planning = {
        ruleSetId: 'api',
        stored: await storage.read('api'),
        edit: { by },
        at: '2026-01-31T12:00:00.000Z',
      }
      const change =
        finish(planPutRuleSet(planning, { id: 'api', rules: [{ id: 'a', bands }] })) ?? expect.unreachable()
      await database.collection('r_sets').insertOne(finish(createHead(change)) as never)
      await eventually('the rule has its document', async () => {
        await storage.readAll()
        return (await database.collection('r').countDocuments()) === 1
      })
      await database.dropDatabase()
    })

    it('a change of more than a hundred rules at once is carried out', async () => {
      const database = freshName()
      const store = mongoRuleStore(client, { database })
      const set = (name: string) => ({
        id: 'api',
        rules: Array.from({ length: 120 }, (_, i) => ({ id: `r${i}`, name, bands })),
      })
      await store.putRuleSet(set('first'), { by })
      expect((await store.putRuleSet(set('second'), { by })).document.version).toBe(2)
      const stored = client.db(database).collection('rate_limit_rules')
      expect(await stored.countDocuments({ name: 'second', version: 2 })).toBe(120)
      await client.db(database).dropDatabase()
    })

    it('no reader sees a partial change while two editors replace twenty rules at a time', async () => {
      const database = freshName()
      const editors = [1, 2].map(() => mongoRuleStore(client, { database }))
      const reader = mongoRuleStore(client, { database })
      const set = (name: string) => ({ id: 'api', rules: ids.map((id) => ({ id, name, bands })) })
      const ids = Array.from({ length: 20 }, (_, i) => `r${i}`)
      await reader.putRuleSet(set('start'), { by })
      let isEditing = true
      const editing = Promise.all(
        editors.map(async (store, editor) => {
          for (let i = 0; i < 15; i++) await store.putRuleSet(set(`${editor}-${i}`), { by })
        }),
      ).finally(() => {
        isEditing = false
      })
      const seen = new Set<string>()
      while (isEditing) {
        const [loaded] = await reader.load()
        const names = new Set(loaded?.rules.map(({ name }) => String(name)))
        expect([loaded?.rules.length, names.size]).toEqual([20, 1])
        for (const name of names) seen.add(name)
      }
      await editing
      expect(seen.size).toBeGreaterThan(1)
      expect((await reader.getRuleSet('api'))?.version).toBe(31)
      await client.db(database).dropDatabase()
    })
  })

  it('accepts a URI, a client or a database, and shows the address without the password', async () => {
    const name = freshName()
    const uri = new URL(server.uri)
    uri.pathname = `/${name}`
    const byUri = mongoRuleStore(uri.href)
    await byUri.putRuleSet({ id: 'api', rules: [] }, { by })
    expect(byUri.source).toBe(`MongoDB at ${uri.host}, database ${name}, collection rate_limit_rules`)
    for (const where of [client.db(name), client]) {
      const store = mongoRuleStore(where, { database: name })
      expect(store.source).toBe(`MongoDB, database ${name}, collection rate_limit_rules`)
      expect((await store.load()).map(({ id }) => id)).toEqual(['api'])
      await store.close()
    }
    await byUri.close()
    // The caller's client is still open.
    await client.db(name).dropDatabase()
  })

  it.skipIf(mongoKind === 'uri')('reports whether the server has change streams', async () => {
    const store = mongoRuleStore(client, { database: freshName() })
    expect(await store.canWatch?.()).toBe(mongoKind === 'mongod')
  })
})

describe('a MongoDB address', () => {
  it.each(['redis://x', 'mongodb://', 'user:secret@host', '', {}, { collection: 1 }])('cannot be %j', (where) => {
    expect(() => mongoRuleStore(where as string)).toThrow(/^The MongoDB address is invalid\. Pass mongodb:\/\//)
  })

  it('that the driver rejects is not shown in the error', async () => {
    const store = mongoRuleStore('mongodb://user:secret@host:1/db?tls=perhaps')
    expect(store.source).toBe('MongoDB at host:1, database db, collection rate_limit_rules')
    const error = await store.load().then(
      () => expect.unreachable(),
      (reason: Error) => reason,
    )
    expect(error).toMatchObject({ code: 'FLUXGATE_CONFIG_INVALID' })
    expect(error.message).not.toContain('secret')
  })

  it('without a server fails soon, with an error that names it', async () => {
    const store = mongoRuleStore('mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=100')
    await expect(store.load()).rejects.toMatchObject({
      code: 'FLUXGATE_RULES_UNREADABLE',
      message: expect.stringContaining(
        'The rules in MongoDB at 127.0.0.1:1, database fluxgate, collection rate_limit_rules could not be read: ',
      ),
    })
    await store.close()
  })
})

const freshName = (): string => `fluxgate_${randomBytes(6).toString('hex')}`
