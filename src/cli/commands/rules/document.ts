import { formatOf, parseDocument } from '../../../rules/document/document.js'
import { readRulesFile } from '../../../rules/document/rules-file.js'
import { UsageError } from '../../failure.js'

const maxBytes = 64 * 2 ** 20

/**
 * Reads a rule document from a file, or from standard input for `-`. Standard input has no file extension, so it is parsed as
 * JSON if it is valid JSON, otherwise as YAML.
 */
export async function readDocument(file: string): Promise<unknown> {
  if (file !== '-') {
    const { text } = await readRulesFile(file, file)
    return parseDocument(text, formatOf(file), file)
  }
  const text = await readStandardInput()
  return parseDocument(text, /^\s*[[{]/.test(text) && isJson(text) ? 'json' : 'yaml', 'standard input')
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

async function readStandardInput(): Promise<string> {
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
