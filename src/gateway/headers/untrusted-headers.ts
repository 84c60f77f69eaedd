/**
 * Request headers from which upstreams commonly take the client address, the URL or the method. They are removed unless the
 * peer is a trusted proxy: any client can forge them, and a URL or method in them would replace the one that limits were
 * matched against.
 */
const forwardingHeaders: ReadonlySet<string> = new Set([
  ...['forwarded', 'forwarded-for', 'x-forwarded', 'x-original-forwarded-for', 'x-forwarder-for'],
  ...['x-real-ip', 'x-client-ip', 'client-ip', 'x-cluster-client-ip', 'true-client-ip', 'x-true-client-ip'],
  ...['cf-connecting-ip', 'cf-connecting-ipv6', 'cf-pseudo-ipv4', 'fastly-client-ip', 'fly-client-ip'],
  ...['x-envoy-external-address', 'x-azure-clientip', 'x-azure-socketip', 'x-appengine-user-ip', 'x-proxyuser-ip'],
  ...['x-remote-addr', 'x-remote-ip', 'x-originating-ip', 'proxy-client-ip', 'wl-proxy-client-ip', 'x-coming-from'],
  ...['x-host', 'x-original-host', 'x-http-host-override', 'x-scheme', 'x-url-scheme', 'x-original-proto'],
  ...['front-end-https', 'x-arr-ssl'],
  ...['x-original-url', 'x-original-uri', 'x-original-path', 'x-rewrite-url', 'x-http-destinationurl'],
  ...['x-http-method-override', 'x-http-method', 'x-method-override', 'x-original-method'],
])

/** `X-Forwarded-Prefix`, `-Server`, `-Scheme`, `-Ssl` and all others. */
const forwardingPrefix = 'x-forwarded-'

/** True if the header must not be forwarded from an untrusted peer. Takes the name in lower case. */
export type IsUntrusted = (name: string) => boolean

/**
 * `identityHeaders` are the headers that limits use as keys. They are forwarded, but not in spellings that a CGI-style upstream
 * treats as the same header (`X_User_Id`). Such spellings of protected headers (`X_Forwarded_For`, `X.Real.IP`) are removed too.
 */
export function untrustedHeaders(
  clientIpHeader: string,
  identityHeaders: readonly (string | undefined)[],
): IsUntrusted {
  const own = clientIpHeader.toLowerCase()
  const identities = new Set(identityHeaders.flatMap((name) => name?.toLowerCase() ?? []))
  const isProtected = (name: string): boolean =>
    name === own || forwardingHeaders.has(name) || name.startsWith(forwardingPrefix)
  return (name) => {
    if (isProtected(name)) return true
    if (!nonCanonical.test(name)) return false
    const canonical = name.replaceAll(allNonCanonical, '-')
    return isProtected(canonical) || identities.has(canonical)
  }
}

const nonCanonical = /[^a-z0-9-]/
const allNonCanonical = /[^a-z0-9-]/g
