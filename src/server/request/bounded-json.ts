import { isUtf8 } from 'node:buffer'
import { closeBrace, closeBracket, endOfString, openBrace, openBracket, quote } from '../../core/json/scanner.js'
import type { Steps } from '../../core/scheduling/steps.js'
import { maxDepth, parseJsonSteps } from '../../rules/document/json-text.js'
import { printable } from '../../validation/issues.js'
import { ApiProblem } from './api-problem.js'

/** Parses a request body. Throws an `ApiProblem`. `__proto__` is harmless: `JSON.parse` creates it as an ordinary property. */
export function parseBoundedJson(bytes: Buffer): unknown {
  const text = textOf(bytes)
  if (isDeeperThan(text, maxDepth)) throw notJson(`is nested deeper than ${maxDepth} levels`)
  try {
    return JSON.parse(text)
  } catch (error) {
    throw notJson(`is not JSON: ${printable((error as SyntaxError).message).slice(0, 200)}`)
  }
}

/** Parses a document to be stored. Also rejects duplicate names, because one of the values would be lost. */
export function* strictJsonSteps(bytes: Buffer): Steps<unknown> {
  const read = yield* parseJsonSteps(textOf(bytes))
  if (read.issue === undefined) return read.value
  throw notJson(`is not JSON: at character ${read.issue.offset + 1}, ${read.issue.message}`)
}

function textOf(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw notJson('is not UTF-8')
  return bytes.toString('utf8')
}

/** Scans the text before parsing, so that the depth is bounded in unknown members too. */
function isDeeperThan(text: string, max: number): boolean {
  if (text.length <= max) return false
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === quote) i = endOfString(text, i) - 1
    else if (code === openBrace || code === openBracket) {
      depth += 1
      if (depth > max) return true
    } else if (code === closeBrace || code === closeBracket) depth -= 1
  }
  return false
}

function notJson(what: string): ApiProblem {
  const message = `The body ${what}.`
  return new ApiProblem('FLUXGATE_REQUEST_INVALID', message, { errors: [{ path: 'body', message: what }] })
}
