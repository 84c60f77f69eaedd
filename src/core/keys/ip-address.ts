/**
 * An IP address as eight groups of 16 bits. An IPv4 address is stored in its IPv4-mapped IPv6 form, so that both notations
 * are the same address.
 */
type Groups = Uint16Array

/** A network. An IPv4 network contains no IPv6 address, and an IPv6 network no IPv4 address. */
export interface Cidr {
  readonly groups: Groups
  /** Prefix length out of 128 bits. An IPv4 /8 is 104 here. */
  readonly prefix: number
}

/** Returns the canonical text: dotted IPv4; lower-case, compressed IPv6 without zone. Returns undefined if it is not an address. */
export function canonicalIp(text: string): string | undefined {
  if (!parse(text, scratch)) return undefined
  // The parser accepts only the canonical notation of IPv4.
  return mayBeIpv6(text) ? format(scratch) : text
}

/** Parses `10.0.0.0/8`, `2001:db8::/32` or a single address. Ignores bits beyond the prefix. Returns undefined if invalid. */
export function parseCidr(text: string): Cidr | undefined {
  const slash = text.indexOf('/')
  const address = slash === -1 ? text : text.slice(0, slash)
  const groups: Groups = new Uint16Array(8)
  if (!parse(address, groups)) return undefined
  if (slash === -1) return { groups, prefix: 128 }
  const bits = text.slice(slash + 1)
  // The prefix of an IPv4-mapped address in colon notation refers to all 128 bits.
  const offset = address.includes(':') ? 0 : 96
  const prefix = /^(?:0|[1-9]\d{0,2})$/.test(bits) ? Number(bits) + offset : Number.NaN
  if (!(prefix <= 128)) return undefined
  mask(groups, prefix)
  return { groups, prefix }
}

/** Formats a network in its canonical notation, such as `10.0.0.0/8`. */
export function cidrText({ groups, prefix }: Cidr): string {
  const isMapped = isIpv4(groups) && prefix >= 96
  return `${format(groups)}/${isMapped ? prefix - 96 : prefix}`
}

/** True if the text is an address inside the network. */
export function inCidr(text: string, cidr: Cidr): boolean {
  if (!parse(text, scratch) || isIpv4(scratch) !== isIpv4(cidr.groups)) return false
  const whole = cidr.prefix >> 4
  for (let i = 0; i < whole; i++) if (scratch[i] !== cidr.groups[i]) return false
  const rest = cidr.prefix & 15
  return rest === 0 || (scratch[whole] as number) >> (16 - rest) === (cidr.groups[whole] as number) >> (16 - rest)
}

/**
 * The rate limit key of an address. One customer usually owns a whole IPv6 network, so IPv6 addresses are grouped by prefix:
 * `2001:db8:0:100::/56`. Text that is not an address is returned unchanged.
 */
export function ipIdentity(ip: string, ipv6Prefix = 56): string {
  if (!mayBeIpv6(ip) || !parse(ip, scratch)) return ip
  if (isIpv4(scratch) || ipv6Prefix >= 128) return format(scratch)
  mask(scratch, ipv6Prefix)
  return `${format(scratch)}/${ipv6Prefix}`
}

/** True if a colon is among the first five characters. At most four digits precede the first colon of an IPv6 address. */
function mayBeIpv6(text: string): boolean {
  for (let i = 0; i < 5; i++) if (text.charCodeAt(i) === colon) return true
  return false
}

// All functions here are synchronous and call no foreign code, so they can share one buffer.
const scratch: Groups = new Uint16Array(8)

function mask(groups: Groups, prefix: number): void {
  for (let i = 0; i < 8; i++) {
    const bits = Math.min(16, Math.max(0, prefix - 16 * i))
    groups[i] = (groups[i] as number) & (0xffff << (16 - bits))
  }
}

function isIpv4(groups: Groups): boolean {
  return groups[5] === 0xffff && !(groups[0] || groups[1] || groups[2] || groups[3] || groups[4])
}

function parse(text: string, groups: Groups): boolean {
  for (let i = 0; i < 8; i++) groups[i] = 0
  if (mayBeIpv6(text)) return parseIpv6(text, groups)
  groups[5] = 0xffff
  return parseIpv4(text, 0, text.length, groups, 6)
}

/** Parses four decimal numbers into two groups. Rejects `010`, which some parsers read as octal. */
function parseIpv4(text: string, start: number, end: number, groups: Groups, index: number): boolean {
  let at = start
  for (let octet = 0; octet < 4; octet++) {
    if (octet > 0 && text.charCodeAt(at++) !== 0x2e) return false
    const first = at
    let value = 0
    while (at < end && at - first < 4 && isDigit(text.charCodeAt(at))) value = value * 10 + text.charCodeAt(at++) - 0x30
    if (at === first || value > 255 || (at - first > 1 && text.charCodeAt(first) === 0x30)) return false
    const group = index + (octet >> 1)
    groups[group] = ((groups[group] as number) << 8) | value
  }
  return at === end
}

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39

function parseIpv6(text: string, groups: Groups): boolean {
  const zone = text.indexOf('%')
  const end = zone === -1 ? text.length : zone
  let at = 0
  let count = 0
  let gap = -1
  while (at < end) {
    // A colon separates two groups. `::` is allowed once and stands for the omitted zero groups.
    if (text.charCodeAt(at) === colon && text.charCodeAt(at + 1) === colon && gap === -1) {
      gap = count
      at += 2
      if (at === end) break
    } else if (count > 0 && text.charCodeAt(at++) !== colon) return false
    if (count === 8) return false
    const first = at
    let value = 0
    while (at < end && at - first < 5 && hexDigit(text.charCodeAt(at)) >= 0)
      value = value * 16 + hexDigit(text.charCodeAt(at++))
    if (text.charCodeAt(at) === 0x2e && count <= 6) {
      if (!parseIpv4(text, first, end, groups, count)) return false
      count += 2
      break
    }
    if (at === first || at - first > 4) return false
    groups[count++] = value
  }
  if (gap === -1) return count === 8
  const tail = 8 - (count - gap)
  groups.copyWithin(tail, gap, count)
  groups.fill(0, gap, tail)
  return count < 8
}

const colon = 0x3a

function hexDigit(code: number): number {
  if (isDigit(code)) return code - 0x30
  const letter = (code | 0x20) - 0x61
  return letter >= 0 && letter < 6 ? letter + 10 : -1
}

/** Formats as in RFC 5952: the longest run of two or more zero groups becomes `::`, the first one if several are equally long. */
function format(groups: Groups): string {
  if (isIpv4(groups)) {
    const [high, low] = [groups[6] as number, groups[7] as number]
    return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
  }
  let start = 0
  let length = 1
  for (let i = 0, run = 0; i < 8; i++) {
    run = groups[i] === 0 ? run + 1 : 0
    if (run > length) {
      length = run
      start = i + 1 - run
    }
  }
  let text = ''
  for (let i = 0; i < 8; i++) {
    if (length > 1 && i === start) {
      text += '::'
      i += length - 1
    } else text += `${text === '' || text.endsWith('::') ? '' : ':'}${(groups[i] as number).toString(16)}`
  }
  return text
}
