import type { TestRunner } from '../../../src/testing/bucket-store-contract.js'
import { bucketStoreContract, type StoreFactory } from '../../../src/testing/bucket-store-contract.js'
import { compareWithModel } from '../../../src/testing/compare-with-model.js'

const inOne = 20

/** Algorithms whose decisions have a path of their own in the script if all bands of all rules have them. */
const withOwnPaths = ['TOKEN_BUCKET', 'FIXED_WINDOW'] as const

/** The store contract, with further random histories in groups that run concurrently, each on its own store. */
export function contractAndHistories(
  it: TestRunner,
  create: StoreFactory,
  {
    histories,
    seed,
    overrides = false,
  }: { readonly histories: number; readonly seed: number; readonly overrides?: boolean },
): void {
  bucketStoreContract(it, create, { histories: inOne, seed, overrides })
  for (let from = inOne; from < histories; from += inOne)
    it(`agrees with the reference models over ${inOne} more histories (seed ${seed + from})`, async () => {
      const group = Array.from({ length: inOne }, (_, n) => from + n)
      const choiceOf = (i: number) => {
        const maxCapacity = i % 2 === 0 ? 20 : 1e9
        const algorithm = withOwnPaths[i % 5]
        return algorithm === undefined ? { maxCapacity } : { maxCapacity, algorithms: [algorithm] }
      }
      await Promise.all(group.map((i) => compareWithModel(create, { seed: seed + i, steps: 100, ...choiceOf(i) })))
    })
}
