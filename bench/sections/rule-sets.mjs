// @ts-check
/** Delay of decisions while a server edits or reloads a large rule set. */
import { figure, spreadFigure } from '../results/report.mjs'
import { measureRuleSets } from '../rule-sets/measure.mjs'

const title = 'Rule sets'

/** @type {import('../results/report.mjs').Section} */
export async function overRuleSets({ ruleSets, progress }) {
  const root = new URL('../../', import.meta.url)
  const changes = await measureRuleSets(root, ruleSets, (change) => progress(`${title}: ${change}`))
  return {
    title,
    note: 'A server decides one check after another while a rule set is replaced or reloaded. The longest turn is CPU time of the main thread in one turn of the event loop, during which no decision is made; other processes do not count. The longest check includes the time that other processes took from the server.',
    tables: [],
    figures: [
      {
        title: 'Edits and reloads during checks',
        head: ['', 'longest turn, CPU ms', 'longest check, ms', 'seconds', 'CPU seconds'],
        lines: changes.map(({ name, longestCpuMs, longestCheckMs, seconds, cpuSeconds }) => [
          name,
          spreadFigure(longestCpuMs, 1),
          figure(longestCheckMs, 1),
          figure(seconds, 2),
          figure(cpuSeconds, 2),
        ]),
      },
    ],
    ratios: [
      {
        what: 'CPU ms of the longest turn during an edit or reload',
        measured: Math.max(...changes.map(({ longestCpuMs }) => longestCpuMs)),
        atMost: 50,
      },
    ],
  }
}
