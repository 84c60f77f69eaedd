import { UsageError } from '../failure.js'

const mostBytes = 64 * 2 ** 20

export async function readStandardInput(): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of process.stdin) {
    length += (chunk as Buffer).length
    if (length > mostBytes) throw new UsageError(`Standard input is longer than ${mostBytes} bytes.`)
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks).toString('utf8')
}
