// @ts-check
/** Imports overrides in a separate process. Arguments: URI, CSV file, `fast` or `gentle`. Prints JSON. */
import { bulkOverrides, parseRuleSets } from '../fluxgate.mjs'
import { importedRule } from './override-table.mjs'

const [uri = '', file = '', how = ''] = process.argv.slice(2)
const [ruleSet] = parseRuleSets(importedRule)
const rule = ruleSet?.rules[0]
if (ruleSet === undefined || rule === undefined) throw new Error('The rule set of the import contains no rule.')
const options = { format: /** @type {const} */ ('csv'), ruleSetId: ruleSet.id, rule, fast: how === 'fast' }
const { done, failed, stoppedBy, isLive } = await bulkOverrides(uri, file, options)
// maxRSS is in kilobytes.
const megabytes = process.resourceUsage().maxRSS / 1024
process.stdout.write(JSON.stringify({ done: isLive ? done : 0, failed, megabytes, stopped: stoppedBy?.message ?? '' }))
