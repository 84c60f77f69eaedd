/** One change of headers. Names keep their letter case. */
export type HeaderChange =
  | { readonly kind: 'ADD' | 'SET'; readonly name: string; readonly value: string }
  | { readonly kind: 'REMOVE'; readonly name: string }

/** Applies changes in order, in place. `headers` is a flat list: name, value, name, value. */
export function changeHeaders(headers: string[], changes: readonly HeaderChange[]): void {
  for (const change of changes) {
    if (change.kind !== 'ADD') removeHeader(headers, change.name)
    if (change.kind !== 'REMOVE') headers.push(change.name, change.value)
  }
}

function removeHeader(headers: string[], name: string): void {
  const lower = name.toLowerCase()
  let kept = 0
  for (let i = 0; i < headers.length; i += 2) {
    if ((headers[i] as string).toLowerCase() === lower) continue
    headers[kept++] = headers[i] as string
    headers[kept++] = headers[i + 1] as string
  }
  headers.length = kept
}
