/**
 * YAML → plain values, within bounds. The yaml package does the grammar; what it would do beyond a bound (run out of
 * stack, compare all keys with each other, expand aliases of aliases) is refused here before it happens.
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
import { compactJson } from '../../core/json/json-places.js'
import { keepText } from '../../core/json/written-json.js'
import { finish, type Steps } from '../../core/scheduling/steps.js'
import { printable, quoted } from '../../validation/issues.js'
import { jsonMistake, maxDepth, type TextMistake } from './json-text.js'
import { composeLists, composerOptions, detachLists, outerDepth } from './yaml-lists.js'

const lexemesPerStep = 64

/** How many values aliases may add to a document in total. */
const maxBorrowed = 100_000

export interface ReadYaml {
  readonly value: unknown
  readonly mistakes: readonly TextMistake[]
  /** The nodes that the value was made of. */
  readonly contents: unknown
  /** Whether some part of it may stand for another one. */
  readonly hasAnchors: boolean
}

export const readYaml = (text: string): ReadYaml => finish(yamlSteps(text))

export function* yamlSteps(text: string): Steps<ReadYaml> {
  const mistakes: TextMistake[] = []
  const tokens = yield* tokensOf(text, mistakes)
  const lists = detachLists(tokens)
  const [document, second] = new Composer(composerOptions).compose(tokens, true, text.length)
  const found = yield* composeLists(document?.contents, lists)
  for (const { pos, message } of [...(document?.errors ?? []), ...(document?.warnings ?? []), ...found]) {
    mistakes.push({ offset: pos[0], message: printable(message.slice(0, 200)) })
  }
  if (second !== undefined) mistakes.push({ offset: second.range[0], message: 'a second document; allowed: one' })
  const contents: unknown = document?.contents
  const plain =
    mistakes.length === 0 ? yield* plainValue(text, contents, mistakes) : { value: undefined, hasAnchors: false }
  return { ...plain, mistakes, contents }
}

/** Stops at the first token that nests too deep, because the composer recurses and has no bound of its own. */
function* tokensOf(text: string, mistakes: TextMistake[]): Steps<readonly CST.Token[]> {
  const parser = new Parser()
  const tokens: CST.Token[] = []
  let count = 0
  for (const lexeme of new Lexer().lex(text)) {
    count += 1
    if (count % lexemesPerStep === 0) yield
    tokens.push(...parser.next(lexeme))
    if (parser.stack.length <= maxDepth + 2) continue
    mistakes.push({ offset: parser.offset, message: `nested deeper than ${maxDepth} levels` })
    return []
  }
  tokens.push(...parser.end())
  return tokens
}

function* plainValue(
  text: string,
  contents: unknown,
  mistakes: TextMistake[],
): Steps<Pick<ReadYaml, 'value' | 'hasAnchors'>> {
  const anchors = new Map<string, { readonly value: unknown; readonly size: number }>()
  let size = 0
  let borrowed = 0

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
  /** As `nodeValue`, with a step after each member of the outer lists and maps. */
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
  /** Shares the value: nothing grows here, but readers of the result will see it as often as it is used. */
  const aliasValue = (name: string, offset: number): unknown => {
    const anchor = anchors.get(name)
    size += anchor?.size ?? 0
    borrowed += anchor?.size ?? 0
    if (anchor === undefined) mistakes.push({ offset, message: `*${name} stands before, or inside, what it refers to` })
    else if (borrowed > maxBorrowed) mistakes.push({ offset, message: `aliases add more than ${maxBorrowed} values` })
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
    if (Object.hasOwn(object, name)) mistakes.push({ offset, message: `${quoted(name)} is given twice` })
    if (name === 'attributes' && isMap(value) && value.flow) keepIfJson(member as object, value)
    // Assigning would take the name `__proto__` for the prototype.
    Object.defineProperty(object, name, { value: member, writable: true, enumerable: true, configurable: true })
  }
  /** What a program wrote through a rule store stands here as JSON, which is YAML too. */
  const keepIfJson = (value: object, { range }: YAMLMap): void => {
    const written = text.slice(range?.[0], range?.[1])
    if (jsonMistake(written) === undefined) keepText(value, compactJson(written))
  }
  const value = yield* outerValue(contents, outerDepth)
  return { value, hasAnchors: anchors.size > 0 }
}

const scalarValue = (node: unknown): unknown => (isScalar(node) ? node.value : null)
