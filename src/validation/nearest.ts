/** The candidate closest to a misspelt `name` by edit distance, for "did you mean" hints; `undefined` if none is close. */
export function nearest(name: string, candidates: readonly string[]): string | undefined {
  if (name.length > 40) return undefined
  const normalizedName = normalized(name)
  let best: string | undefined
  let bestDistance = Math.min(3, Math.floor(normalizedName.length / 2) + 1)
  for (const candidate of candidates) {
    const distance = editDistance(normalizedName, normalized(candidate))
    if (distance >= bestDistance) continue
    best = candidate
    bestDistance = distance
  }
  return best
}

/** The names that other rate limiters use, with ours, in the order of preference. */
const namesOfPeers: Readonly<Record<string, readonly string[]>> = {
  max: ['capacity', 'bands'],
  limit: ['capacity', 'bands'],
  points: ['capacity', 'bands'],
  capacity: ['bands'],
  window: ['bands'],
  windowms: ['windowMs', 'window', 'bands'],
  timewindow: ['window', 'bands'],
  ttl: ['window', 'bands'],
  duration: ['window', 'bands'],
  interval: ['window', 'bands'],
  keygenerator: ['key', 'keyResolver'],
  weight: ['permits'],
  skipsuccessfulrequests: ['countWhen'],
  skipfailedrequests: ['countWhen'],
  requestwassuccessful: ['countWhen'],
  allowlist: ['skip'],
  whitelist: ['skip'],
  errorresponsebuilder: ['message'],
  limithandler: ['onRejected'],
  onexceeded: ['onRejected'],
  standardheaders: ['headers'],
  legacyheaders: ['headers'],
  trustproxy: ['trustedProxies'],
  ip: ['clientIp'],
  address: ['clientIp'],
  remoteaddress: ['clientIp'],
  user: ['userId'],
  token: ['apiKey'],
  url: ['path'],
  endpoint: ['path'],
  timeout: ['maxWaitMs', 'timeoutMs'],
  maxwait: ['maxWaitMs'],
}

/**
 * The end of a message about an unknown name: `did you mean capacity?` for a misspelt name or the name that other rate limiters
 * use, or all allowed names.
 */
export function nameHint(name: string, names: readonly string[]): string {
  const suggestion = nameOfPeer(name, names) ?? nearest(name, names)
  return suggestion === undefined ? `allowed: ${names.join(', ')}` : `did you mean ${suggestion}?`
}

function nameOfPeer(name: string, names: readonly string[]): string | undefined {
  const key = normalized(name)
  const ours = Object.hasOwn(namesOfPeers, key) ? namesOfPeers[key] : undefined
  return ours?.find((one) => names.includes(one))
}

/** Ignores case and separators, so that `limit_scope`, `limit-scope` and `LimitScope` are equal. */
const normalized = (name: string): string => name.toLowerCase().replaceAll(/[-_\s]/g, '')

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replace = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replace, (row[j] as number) + 1, (next[j - 1] as number) + 1))
    }
    row = next
  }
  return row[b.length] as number
}
