import { searchIndex } from 'fluxgate-js/search-index'

const books = searchIndex(process.env.REDIS_URI ?? 'redis://127.0.0.1:6379', {
  name: 'example-catalogue',
  fields: {
    price: { kind: 'number' },
    shelf: { kind: 'composite', of: ['shelf', 'title'] },
    tags: { kind: 'tags' },
    title: { kind: 'suggest', weight: 'loans' },
  },
})
const titles = ({ items }) => items.map(({ record }) => record.title).join(', ')

await books.clear()
await books.put('1', { title: 'Emma', shelf: 'novels', price: 9, loans: 40, tags: ['classic'] })
await books.put('2', { title: 'Embers', shelf: 'novels', price: 12, loans: 7, tags: ['new'] })
await books.put('3', { title: 'Empires', shelf: 'history', price: 30, loans: 90, tags: ['new', 'large'] })
await books.put('4', { title: '엄마를 부탁해', shelf: 'novels', price: 12, loans: 55, tags: ['classic'] })

console.log('up to 12:', titles(await books.find({ by: 'price', to: 12 })))
console.log('novels by title:', titles(await books.find({ by: 'shelf', equals: ['novels'] })))
console.log('new, up to 20:', titles(await books.find({ by: 'price', to: 20, tagged: { tags: 'new' } })))
console.log('Em…:', (await books.suggest('title', 'Em')).map(({ term, count }) => `${term} (${count})`).join(', '))
console.log('엄…:', (await books.suggest('title', '엄')).map(({ term }) => term).join(', '))

// Updates the record and all its index entries atomically.
await books.update('2', (book) => ({ ...book, loans: book.loans + 100, tags: ['popular'] }))
console.log('Em…:', (await books.suggest('title', 'Em')).map(({ term, count }) => `${term} (${count})`).join(', '))

for (let cursor, page = 1; cursor !== null; page++) {
  const found = await books.find({ by: 'price', order: 'descending', limit: 2, cursor })
  console.log(`page ${page}:`, titles(found))
  cursor = found.cursor
}
console.log('sound:', (await books.verify()).isSound)
await books.close()
