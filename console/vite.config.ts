import { fileURLToPath } from 'node:url'
import { defineConfig, type UserConfig } from 'vite'

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** Assets have relative URLs, because the server and static hosts serve them from different folders. */
const config: UserConfig = {
  root: here('.'),
  base: './',
  build: {
    outDir: here('../dist/console'),
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: { input: [here('index.html'), here('playground.html')] },
  },
  worker: { format: 'es' },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  // `npx vite console` serves the sources and forwards API requests to a running server.
  server: { proxy: { '^/(api|health|info|openapi.json)': 'http://127.0.0.1:8090' } },
}

/** Mode `playground`: only the playground, with one script that is no module. */
const playground: UserConfig = {
  ...config,
  build: {
    ...config.build,
    write: false,
    rolldownOptions: { input: here('playground.html'), output: { format: 'iife', codeSplitting: false } },
  },
}

export default defineConfig(({ mode }) => (mode === 'playground' ? playground : config))
