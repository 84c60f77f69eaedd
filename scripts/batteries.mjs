// @ts-check
/** Generated traffic against the gateway and the middlewares: `npm run batteries -- --help`. */
import { runTypeScript } from './run-typescript.mjs'

await runTypeScript('test/batteries/main.ts', 'batteries')
