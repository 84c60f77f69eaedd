// @ts-check
/** Replaces a rule set in MongoDB repeatedly until it is killed. Prints the version of each confirmed edit. */
import { mongoRuleStore } from '../../../../dist/mongo.js'

const [uri = '', database = ''] = process.argv.slice(2)
const store = mongoRuleStore(uri, { database })
const bands = [{ capacity: 10, window: '1m' }]

for (let edit = 1; ; edit++) {
  const name = `${process.pid}-${edit}`
  const rules = Array.from({ length: 10 }, (_, i) => ({ id: `r${i}`, name, bands }))
  const { document } = await store.putRuleSet({ id: 'api', rules }, { by: name })
  process.stdout.write(`${document.version}\n`)
}
