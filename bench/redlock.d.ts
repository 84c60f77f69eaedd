/** The `exports` of the package do not include its types. */
declare module 'redlock' {
  export type Settings = import('../node_modules/redlock/dist/index.js').Settings
  const Redlock: typeof import('../node_modules/redlock/dist/index.js').default

  export { Redlock as default }
}
