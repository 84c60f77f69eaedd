/** Longer lines are truncated, so that no file exhausts the memory. */
const maxLineLength = 64 * 1024

/** Splits a stream of UTF-8 chunks into lines without their line ends: one batch per chunk, because a promise per line is slow. */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<readonly string[]> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let open = ''
  for await (const chunk of chunks) {
    const lines = decoder.decode(chunk, { stream: true }).split('\n')
    const last = lines.pop() ?? ''
    if (lines.length > 0) {
      lines[0] = open + lines[0]
      open = ''
      yield lines.map(trimmed)
    }
    if (open.length < maxLineLength) open += last
  }
  open += decoder.decode()
  if (open !== '') yield [trimmed(open)]
}

function trimmed(line: string): string {
  const cut = line.length > maxLineLength ? line.slice(0, maxLineLength) : line
  return cut.endsWith('\r') ? cut.slice(0, -1) : cut
}
