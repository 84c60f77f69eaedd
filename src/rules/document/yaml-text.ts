/**
 * Parses YAML to plain values with limits on depth and size. The yaml package parses the grammar. This module adds what it
 * lacks: protection against stack overflow, quadratic key comparison and exponential alias expansion.
 */
import {
  Composer,
  type CST,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  Lexer,
  type Pair,
  Parser,
  type YAMLMap,
} from 'yaml'
import { compactJson } from '../../core/json/json-ranges.js'
import { keepSourceText } from '../../core/json/source-text.js'
import type { Steps } from '../../core/scheduling/steps.js'
import { printable, quoted } from '../../validation/issues.js'
import { jsonIssue, maxDepth, type TextIssue } from './json-text.js'
import { composeLists, composerOptions, detachLists, outerDepth } from './yaml-lists.js'

const lexemesPerStep = 64

/** Maximum number of values that aliases add to a document. */
const maxAliased = 100_000

export interface ParsedYaml {
  readonly value: unknown
  readonly issues: readonly TextIssue[]
  /** The parsed nodes. */
  readonly contents: unknown
  /** True if the document has anchors, so a node may occur in several places. */
  readonly hasAnchors: boolean
}

export function* parseYamlSteps(text: string): Steps<ParsedYaml> {
  const issues: TextIssue[] = []
  const tokens = yield* tokensOf(text, issues)
  const lists = detachLists(tokens)
  const [document, second] = new Composer(composerOptions).compose(tokens, true, text.length)
  const found = yield* composeLists(document?.contents, lists)
  for (const { pos, message } of [...(document?.errors ?? []), ...(document?.warnings ?? []), ...found]) {
    issues.push({ offset: pos[0], message: printable(message.slice(0, 200)) })
  }
  if (second !== undefined)
    issues.push({ offset: second.range[0], message: 'must be a single document; received a second one' })
  const contents: unknown = document?.contents
  const plain =
    issues.length === 0 ? yield* plainValue(text, contents, issues) : { value: undefined, hasAnchors: false }
  return { ...plain, issues, contents }
}

/** Stops at the first token that exceeds the depth limit, because the composer is recursive and has no limit. */
function* tokensOf(text: string, issues: TextIssue[]): Steps<readonly CST.Token[]> {
  const parser = new Parser()
  const tokens: CST.Token[] = []
  let count = 0
  for (const lexeme of new Lexer().lex(text)) {
    count += 1
    if (count % lexemesPerStep === 0) yield
    tokens.push(...parser.next(lexeme))
    if (parser.stack.length <= maxDepth + 2) continue
    issues.push({ offset: parser.offset, message: `nested deeper than ${maxDepth} levels` })
    return []
  }
  tokens.push(...parser.end())
  return tokens
}

function* plainValue(
  text: string,
  contents: unknown,
  issues: TextIssue[],
): Steps<Pick<ParsedYaml, 'value' | 'hasAnchors'>> {
  const anchors = new Map<string, { readonly value: unknown; readonly size: number }>()
  let size = 0
  let aliased = 0

  const nodeValue = (node: unknown): unknown => {
    const before = size
    size += 1
    if (isAlias(node)) return aliasValue(node.source, node.range?.[0] ?? 0)
    const value = isMap(node) ? mapValue(node) : isSeq(node) ? node.items.map(nodeValue) : scalarValue(node)
    return anchored(node, value, before)
  }
  const anchored = (node: unknown, value: unknown, before: number): unknown => {
    if ((isMap(node) || isSeq(node) || isScalar(node)) && node.anchor !== undefined)
      anchors.set(node.anchor, { value, size: size - before })
    return value
  }
  /** Like `nodeValue`, but yields after each member of the outer lists and maps. */
  function* outerValue(node: unknown, depth: number): Steps<unknown> {
    if (depth === 0 || !(isMap(node) || isSeq(node))) return nodeValue(node)
    const before = size
    size += 1
    const [object, list]: [object, unknown[]] = [{}, []]
    for (const item of node.items) {
      if (isPair(item)) setMember(object, item, yield* outerValue(item.value, depth - 1))
      else list.push(yield* outerValue(item, depth - 1))
      yield
    }
    return anchored(node, isMap(node) ? object : list, before)
  }
  /** Returns the shared value of the anchor. Consumers visit it once per alias, so its size counts each time. */
  const aliasValue = (name: string, offset: number): unknown => {
    const anchor = anchors.get(name)
    size += anchor?.size ?? 0
    aliased += anchor?.size ?? 0
    if (anchor === undefined) issues.push({ offset, message: `*${name} must refer to an anchor before it` })
    else if (aliased > maxAliased) issues.push({ offset, message: `aliases add more than ${maxAliased} values` })
    return anchor?.value
  }
  const mapValue = (map: YAMLMap): unknown => {
    const result = {}
    for (const pair of map.items) setMember(result, pair, nodeValue(pair.value))
    return result
  }
  const setMember = (object: object, pair: Pair, member: unknown): void => {
    const { key, value } = pair
    const name = isScalar(key) && key.value !== null ? String(key.value) : ''
    const offset = isScalar(key) ? (key.range?.[0] ?? 0) : 0
    if (Object.hasOwn(object, name)) issues.push({ offset, message: `${quoted(name)} is given twice` })
    if (name === 'attributes' && isMap(value) && value.flow) keepIfJson(member as object, value)
    // An assignment to `__proto__` would set the prototype.
    Object.defineProperty(object, name, { value: member, writable: true, enumerable: true, configurable: true })
  }
  /** Keeps the source text of `attributes` that a rule store wrote as JSON, which is valid YAML. */
  const keepIfJson = (value: object, { range }: YAMLMap): void => {
    const written = text.slice(range?.[0], range?.[1])
    if (jsonIssue(written) === undefined) keepSourceText(value, compactJson(written))
  }
  const value = yield* outerValue(contents, outerDepth)
  return { value, hasAnchors: anchors.size > 0 }
}

const scalarValue = (node: unknown): unknown => (isScalar(node) ? node.value : null)
