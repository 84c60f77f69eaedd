// @ts-check
/** Loaded into a process under test with `--import`: reports its memory when asked, after garbage collection. */
process.on('message', () => {
  for (let round = 0; round < 3; round++) /** @type {any} */ (globalThis).gc?.()
  // `external` includes array buffers.
  const { rss, heapUsed, external } = process.memoryUsage()
  process.send?.({ rss, live: heapUsed + external })
})
process.channel?.unref()
