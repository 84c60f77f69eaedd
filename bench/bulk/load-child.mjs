// @ts-check
/** Runs one load in a separate process. Arguments: URI, file of commands, `fast` or `gentle`. Prints JSON. */

/** Imports only this module, as a loading program would. @type {typeof import('../../src/bulk.js')} */
const { bulkLoad } = await import(new URL('../../dist/bulk.js', import.meta.url).href)

const [uri = '', file = '', how = ''] = process.argv.slice(2)
const { done, failed, stoppedBy } = await bulkLoad(uri, file, { format: 'commands', fast: how === 'fast' })
// maxRSS is in kilobytes.
const megabytes = process.resourceUsage().maxRSS / 1024
process.stdout.write(JSON.stringify({ done, failed, megabytes, stopped: stoppedBy?.message ?? '' }))
