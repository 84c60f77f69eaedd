import { StringDecoder } from 'node:string_decoder'

/** No log line that means something is longer; the rest of a longer one is dropped, so that no file fills the memory. */
const longestLine = 64 * 1024

/** The lines of a text that comes in pieces, without their ends. */
export async function* readLines(chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8')
  let open = ''
  for await (const chunk of chunks) {
    const lines = decoder.write(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)).split('\n')
    const last = lines.pop() ?? ''
    for (const line of lines) {
      yield trimmed(open + line)
      open = ''
    }
    if (open.length < longestLine) open += last
  }
  open += decoder.end()
  if (open !== '') yield trimmed(open)
}

function trimmed(line: string): string {
  const cut = line.length > longestLine ? line.slice(0, longestLine) : line
  return cut.endsWith('\r') ? cut.slice(0, -1) : cut
}
