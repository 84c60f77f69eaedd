import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** Assets have relative URLs, so that the playground also works as a static page in any folder. */
export default defineConfig({
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
})
