// @ts-check
/** All sections by name, in order of execution. A section is imported by the process that runs it, and by no other. */

/** @type {Readonly<Record<string, () => Promise<import('../results/report.mjs').Section>>>} */
export const sections = {
  'single-band': async () => (await import('./single-band.mjs')).singleBand,
  rules: async () => (await import('./rules.mjs')).byRules,
  matching: async () => (await import('./matching.mjs')).matching,
  memory: async () => (await import('./memory.mjs')).memory,
  algorithms: async () => (await import('./algorithms.mjs')).allAlgorithms,
  redis: async () => (await import('./redis.mjs')).overRedis,
  leases: async () => (await import('./leases.mjs')).leases,
  bulk: async () => (await import('./bulk.mjs')).bulk,
  lock: async () => (await import('./lock.mjs')).lock,
  'search-index': async () => (await import('./search-index.mjs')).overSearchIndex,
  frameworks: async () => (await import('./frameworks.mjs')).overFrameworks,
  gateway: async () => (await import('./gateway.mjs')).overGateways,
  server: async () => (await import('./server.mjs')).overServers,
  services: async () => (await import('./services.mjs')).overServices,
  'rule-sets': async () => (await import('./rule-sets.mjs')).overRuleSets,
  replay: async () => (await import('./replay.mjs')).replay,
  faults: async () => (await import('./faults.mjs')).faults,
}
