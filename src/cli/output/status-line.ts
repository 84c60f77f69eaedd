export interface StatusLine {
  /** Replaces the line. */
  show(text: string): void
  clear(): void
}

type Output = Pick<NodeJS.WriteStream, 'write' | 'isTTY'>

/** A status line for long-running commands. Prints only to a terminal. */
export function statusLine(stream: Output): StatusLine {
  const write = (text: string): void => {
    if (stream.isTTY) stream.write(`\r\u001b[K${text}`)
  }
  return { show: (text) => write(`${text} …`), clear: () => write('') }
}
