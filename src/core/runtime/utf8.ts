const encoder = new TextEncoder()

/** The bytes of a text in UTF-8. */
export const utf8 = (text: string): Uint8Array => encoder.encode(text)

/** The number of bytes of a text in UTF-8. */
export const utf8Length: (text: string) => number = globalThis.Buffer?.byteLength ?? ((text) => utf8(text).length)

/** The bytes of a text, each as `%` and two upper-case hexadecimal digits. */
export function percentEncoded(text: string): string {
  let result = ''
  for (const byte of utf8(text)) result += `%${byte < 16 ? '0' : ''}${byte.toString(16).toUpperCase()}`
  return result
}
