import { isUtf8 } from 'node:buffer'
import type { Steps } from '../../core/scheduling/steps.js'
import { parseJsonSteps } from '../../rules/document/json-text.js'
import { printable } from '../../validation/issues.js'
import { ApiProblem } from './api-problem.js'

/** Deeper than any valid rule, and shallow enough for recursive functions. */
export const maxDepth = 100

const quote = 0x22
const backslash = 0x5c

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
    if (code === quote) i = endOfString(text, i)
    else if (code === 0x7b || code === 0x5b) {
      depth += 1
      if (depth > max) return true
    } else if (code === 0x7d || code === 0x5d) depth -= 1
  }
  return false
}

function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (end !== -1 && isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return end === -1 ? text.length : end
}

function isEscaped(text: string, at: number): boolean {
  let first = at
  while (text.charCodeAt(first - 1) === backslash) first -= 1
  return (at - first) % 2 === 1
}

function notJson(what: string): ApiProblem {
  const message = `The body ${what}.`
  return new ApiProblem('FLUXGATE_REQUEST_INVALID', message, { errors: [{ path: 'body', message: what }] })
}
