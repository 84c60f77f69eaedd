/**
 * A module of Node, or undefined in a runtime that has none. Edge runtimes and bundlers for browsers reject an import of
 * `node:`, so modules that run there ask for it at run time.
 */
export const builtinModule = <Name extends keyof NodeModules>(name: Name): NodeModules[Name] | undefined =>
  globalThis.process?.getBuiltinModule?.(name) as NodeModules[Name] | undefined

interface NodeModules {
  readonly 'node:crypto': typeof import('node:crypto')
  readonly 'node:module': typeof import('node:module')
  readonly 'node:util': typeof import('node:util')
}
