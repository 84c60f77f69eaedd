import { stringify } from 'yaml'
import { onOneLine, withSourceTexts } from '../../../core/json/source-text.js'
import { type DocumentFormat, formatOf, parseDocument } from '../../../rules/document/document.js'
import { issueLocator } from '../../../rules/document/locate-issues.js'
import { readRulesFile } from '../../../rules/document/rules-file.js'
import type { LocateIssues } from '../../../rules/schema/parse-rules.js'
import { UsageError } from '../../failure.js'
import { print, printJson } from '../../output/output.js'

const maxBytes = 64 * 2 ** 20

/**
 * Reads a rule document from a file, or from standard input for `-`. Standard input has no file extension, so it is parsed as
 * JSON if it is valid JSON, otherwise as YAML.
 */
export async function readDocument(file: string): Promise<WrittenDocument> {
  if (file !== '-') {
    const { text } = await readRulesFile(file, file)
    return writtenDocument(text, formatOf(file), file)
  }
  const text = await readStandardInput()
  return writtenDocument(text, /^\s*[[{]/.test(text) && isJson(text) ? 'json' : 'yaml', 'standard input')
}

export interface WrittenDocument {
  readonly document: unknown
  /** Adds the positions in the file to validation issues. */
  readonly locate: LocateIssues
}

const writtenDocument = (text: string, format: DocumentFormat, source: string): WrittenDocument => ({
  document: parseDocument(text, format, source),
  locate: issueLocator(text, format),
})

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

/** Prints YAML or JSON. Keeps numbers and key order as they were written, and does not wrap lines. */
export function printDocument(document: unknown, { json }: { readonly json?: true }): void {
  if (json) printJson(document)
  else print(withSourceTexts(document, yamlText, onOneLine).trimEnd())
}

const yamlText = (document: unknown): string => stringify(document, { lineWidth: 0, aliasDuplicateObjects: false })
