// A process that edits an index randomly until it is killed. With `rebuilds` it also rebuilds the index from time to
// time.

import { seededRandom } from '../../../dist/core/seeded-random.js'
import { searchIndex } from '../../../dist/search-index.js'

const { where, options, seed, rebuilds } = JSON.parse(process.argv[2])
const random = seededRandom(seed)
const below = (count) => Math.floor(random() * count)
const index = searchIndex(where, options)

const scripts = ['user:', 'user:', 'user:', '한국어 ', '한국어 ', '😀', '']
const record = () => ({
  name: `${scripts[below(7)]}${below(2_000)}`,
  price: below(50) / 4,
  sold: 1 + below(5),
  ...(random() < 0.8 && { category: `c${below(5)}` }),
  ...(random() < 0.8 && { colours: Array.from({ length: below(4) }, () => `colour ${below(30)}`) }),
})

async function edit() {
  const id = `p${below(1_600)}`
  const kind = random()
  if (kind < 0.6) await index.put(id, record())
  else if (kind < 0.7) await index.insert(id, record())
  else if (kind < 0.8) await index.update(id, (old) => ({ ...old, sold: old.sold + 1 }))
  else await index.remove(id)
  if (rebuilds && random() < 0.002) await index.rebuild()
}

async function editForever() {
  for (;;) {
    // A killed connection is restored automatically.
    await edit().catch(() => new Promise((resolve) => setTimeout(resolve, 5)))
  }
}

await edit()
process.send('begun')
await Promise.all(Array.from({ length: 8 }, editForever))
