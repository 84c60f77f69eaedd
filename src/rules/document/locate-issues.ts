/** Finds the lines and columns of validation issues. It runs only for invalid documents, so that valid ones are not parsed twice. */
import { isMap, isScalar, isSeq, type Pair, type Scalar } from 'yaml'
import type { ValidationIssue } from '../../core/errors.js'
import { findJsonRanges, type JsonPath } from '../../core/json/json-ranges.js'
import type { Steps } from '../../core/scheduling/steps.js'
import type { LocateIssues } from '../schema/parse-rules.js'
import type { DocumentFormat } from './document.js'
import { parseJsonSteps } from './json-text.js'
import { lineStartSteps, positionOf } from './text-position.js'
import { parseYamlSteps } from './yaml-text.js'

/** The offset of a name or value at a path. `found` is the number of path elements that exist. */
interface Place {
  readonly offset: number
  readonly found: number
}

type FindPlace = (path: JsonPath, isName: boolean) => Place

/** Returns a function that adds line and column to each issue whose path exists in the text, completely or in part. */
export function issueLocator(text: string, format: DocumentFormat): LocateIssues {
  return function* locate(issues) {
    const body = text.startsWith('\ufeff') ? text.slice(1) : text
    const find = format === 'json' ? yield* jsonPlaces(body) : yield* yamlPlaces(body)
    const starts = yield* lineStartSteps(body)
    const located: ValidationIssue[] = []
    for (const issue of issues) {
      const { offset, found } = find(elementsOf(issue.path), issue.message.startsWith('unknown '))
      located.push(found === 0 ? issue : { ...issue, ...positionOf(offset, starts) })
      yield
    }
    return located
  }
}

/** The elements of a path: `rules[0].when["header.x"]` → rules, 0, when, header.x. It ends at a name that was shortened. */
function elementsOf(path: string): JsonPath {
  const elements: (string | number)[] = []
  for (const [, name, index, quotedName] of path.matchAll(element)) {
    if (name !== undefined) elements.push(name)
    else if (index !== undefined) elements.push(Number(index))
    else elements.push(JSON.parse(quotedName as string) as string)
  }
  return elements
}

const element = /(?:^|\.)([A-Za-z_$][\w$-]*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]/gy

/** Messages say `ruleSets[0]` too if the document is a list of rule sets, or a single one. */
function inDocument(path: JsonPath, isList: boolean, hasMember: (name: string) => boolean): JsonPath {
  const [first, second] = path
  if (first !== 'ruleSets' || hasMember('ruleSets')) return path
  return isList ? path.slice(1) : path.slice(second === 0 ? 2 : 1)
}

function* yamlPlaces(text: string): Steps<FindPlace> {
  const { contents } = yield* parseYamlSteps(text)
  const hasMember = (name: string): boolean => isMap(contents) && contents.has(name)
  return (path, isName) => {
    const inner = inDocument(path, isSeq(contents), hasMember)
    let found = path.length - inner.length
    let offset = startOf(contents) ?? 0
    let node: unknown = contents
    for (const [index, name] of inner.entries()) {
      const pair = isMap(node) ? pairOf(node.items, String(name)) : undefined
      const item = isSeq(node) ? node.items[Number(name)] : undefined
      if (pair === undefined && item === undefined) break
      node = pair === undefined ? item : pair.value
      // A list or an object starts on a line of its own, so its name is where to look.
      const pointsToName = pair !== undefined && (!isScalar(node) || (isName && index === inner.length - 1))
      offset = startOf(pointsToName ? pair.key : node) ?? startOf(pair?.key) ?? offset
      found += 1
    }
    return { offset, found }
  }
}

const pairOf = (items: readonly Pair[], name: string): Pair | undefined =>
  items.find(({ key }) => isScalar(key) && String((key as Scalar).value) === name)

const startOf = (node: unknown): number | undefined =>
  (node as { range?: readonly number[] | null } | null | undefined)?.range?.[0]

/** Outer values are located while the text is parsed in steps, inner ones only in the rule that has the issue. */
function* jsonPlaces(text: string): Steps<FindPlace> {
  const outer = new Map<string, readonly [start: number, end: number]>()
  const onPlace = (path: JsonPath, start: number, end: number): void => {
    outer.set(JSON.stringify(path), [start, end])
  }
  const read = yield* parseJsonSteps(text, { onPlace })
  const root = 'value' in read ? read.value : undefined
  const isList = Array.isArray(root)
  const hasMember = (name: string): boolean => typeof root === 'object' && root !== null && Object.hasOwn(root, name)
  return (path, isName) => {
    const inner = inDocument(path, isList, hasMember)
    const skipped = path.length - inner.length
    for (let length = inner.length; length > 0; length--) {
      const start = jsonStart(text, inner.slice(0, length), outer)
      if (start === undefined) continue
      const offset = isName && length === inner.length ? nameBefore(text, start) : start
      return { offset, found: skipped + length }
    }
    return { offset: text.search(/\S/), found: skipped }
  }
}

function jsonStart(
  text: string,
  path: JsonPath,
  outer: ReadonlyMap<string, readonly [start: number, end: number]>,
): number | undefined {
  const known = outer.get(JSON.stringify(path.slice(0, outerDepth)))
  if (known === undefined || path.length <= outerDepth) return known?.[0]
  const [start, end] = known
  const wanted = JSON.stringify(path.slice(outerDepth))
  const [range] = findJsonRanges(text.slice(start, end), (_, inner) => JSON.stringify(inner) === wanted)
  return range && start + range.start
}

/** As deep as `parseJsonSteps` reports places. */
const outerDepth = 4

/** The start of the name of the member whose value starts at an offset. */
function nameBefore(text: string, start: number): number {
  const end = text.lastIndexOf('"', start - 1)
  const isMember = end >= 0 && /^"\s*:\s*$/.test(text.slice(end, start))
  let at = isMember ? end - 1 : start
  while (isMember && (text[at] !== '"' || isEscaped(text, at))) at -= 1
  return at
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0
  while (text[at - 1 - backslashes] === '\\') backslashes += 1
  return backslashes % 2 === 1
}
