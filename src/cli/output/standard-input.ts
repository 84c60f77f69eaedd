import { UsageError } from '../failure.js'

const maxBytes = 64 * 2 ** 20

export async function readStandardInput(): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of process.stdin) {
    length += (chunk as Buffer).length
    if (length > maxBytes)
      throw new UsageError(`Standard input exceeds ${maxBytes} bytes. Split the document into several files.`)
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks).toString('utf8')
}
