// @ts-check
/** Rules of a gate: one process for each number of rules, with buckets in memory, where a decision is cheapest. */
import { startChild } from '../child.mjs'
import { seriesOf, visit } from './dimension.mjs'

const child = new URL('rules-child.mjs', import.meta.url)
/** Rules that receive all requests of one of the series. */
const few = 10

/** @type {(effort: import('./dimension.mjs').GrowthEffort) => Promise<import('./dimension.mjs').Dimension>} */
export async function rules(effort) {
  const measured = async (/** @type {string} */ what, /** @type {(rules: number) => number} */ asked) => {
    effort.progress(`Rules, ${what}: compiling`)
    const children = effort.rules.map((count) =>
      startChild(child, [count, asked(count), effort.operations].map(String)),
    )
    try {
      await Promise.all(children.map(({ heard }) => heard()))
      return await visit(`Rules, ${what}`, children.length, effort, (index) => {
        const { tell, heard } = /** @type {ReturnType<typeof startChild>} */ (children[index])
        tell('go')
        return heard()
      })
    } finally {
      for (const { stop } of children) stop()
    }
  }
  return {
    id: 'rules',
    title: 'Rules',
    axis: 'rules',
    per: 'decision',
    note: `\`gate.check\` with buckets in memory, 100,000 addresses at every point, one matching rule per request. Requests for all rules in random order miss the CPU cache; requests for ${few} of them do not.`,
    points: effort.rules,
    series: [
      seriesOf(`requests for ${few} rules`, await measured(`requests for ${few} rules`, () => few), 'clientUs', true),
      seriesOf('requests for all rules', await measured('requests for all rules', (count) => count), 'clientUs', true),
    ],
  }
}
