import { ApiProblem, invalidRequest } from './api-problem.js'
import type { Route } from './route.js'

export interface Found {
  readonly route: Route
  readonly params: Readonly<Record<string, string>>
}

interface Node {
  readonly children: Map<string, Node>
  /** Child for a `:name` segment. */
  any: Node | undefined
  /** Child for a final `:name*`, which matches all remaining segments. */
  rest: Node | undefined
  /** Parameter names on the path to this node. */
  readonly names: string[]
  readonly methods: Map<string, Route>
}

const newNode = (): Node => ({ children: new Map(), any: undefined, rest: undefined, names: [], methods: new Map() })
const noParams = Object.freeze({})

/** Matches paths with a tree of segments. Paths without parameters need a single map lookup. */
export class Router {
  readonly #root = newNode()
  readonly #fixed = new Map<string, Node>()

  constructor(routes: readonly Route[]) {
    for (const route of routes) this.#add(route)
  }

  /** Throws 404, 405, or 400 for an invalid percent-encoding. HEAD uses the GET route. */
  find(method: string, path: string): Found {
    const [node, values] = this.#locate(path)
    const route = node.methods.get(method) ?? (method === 'HEAD' ? node.methods.get('GET') : undefined)
    if (route === undefined) throw notAllowed(method, allowOf(node))
    if (values.length === 0) return { route, params: noParams }
    const params = Object.fromEntries(node.names.map((name, i) => [name, decoded(values[i] as string)]))
    return { route, params }
  }

  /** The value of the `Allow` header for a path. Throws 404. */
  allowed(path: string): string {
    return allowOf(this.#locate(path)[0])
  }

  #locate(path: string): readonly [Node, readonly string[]] {
    const fixed = this.#fixed.get(path)
    if (fixed !== undefined) return [fixed, noValues]
    const values: string[] = []
    const found = walk(this.#root, path.slice(1).split('/'), 0, values)
    if (found === undefined || path[0] !== '/')
      throw new ApiProblem('FLUXGATE_NOT_FOUND', 'The resource does not exist. See /openapi.json for all routes.')
    return [found, values]
  }

  #add(route: Route): void {
    let node = this.#root
    const names: string[] = []
    for (const segment of route.path.slice(1).split('/')) {
      if (!segment.startsWith(':')) {
        const next = node.children.get(segment) ?? newNode()
        node.children.set(segment, next)
        node = next
        continue
      }
      const isRest = segment.endsWith('*')
      names.push(isRest ? segment.slice(1, -1) : segment.slice(1))
      if (isRest) node.rest ??= newNode()
      else node.any ??= newNode()
      node = (isRest ? node.rest : node.any) as Node
    }
    node.methods.set(route.method, route)
    if (node.names.length === 0) node.names.push(...names)
    if (names.length === 0) this.#fixed.set(route.path, node)
  }
}

const noValues: readonly string[] = []

function walk(node: Node, segments: readonly string[], at: number, values: string[]): Node | undefined {
  if (at === segments.length) return node.methods.size > 0 ? node : undefined
  const segment = segments[at] as string
  const child = node.children.get(segment)
  if (child !== undefined) return walk(child, segments, at + 1, values)
  if (segment === '') return undefined
  if (node.any !== undefined) {
    values.push(segment)
    return walk(node.any, segments, at + 1, values)
  }
  if (node.rest !== undefined) values.push(segments.slice(at).join('/'))
  return node.rest
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    throw invalidRequest('path', 'contains an invalid percent-encoding; use UTF-8')
  }
}

function allowOf({ methods }: Node): string {
  const names = [...methods.keys()]
  if (methods.has('GET')) names.push('HEAD')
  return [...names, 'OPTIONS'].join(', ')
}

function notAllowed(method: string, allow: string): ApiProblem {
  return new ApiProblem(
    'FLUXGATE_METHOD_NOT_ALLOWED',
    `${method} is not supported here. Supported methods: ${allow}.`,
    {
      headers: { Allow: allow },
    },
  )
}
