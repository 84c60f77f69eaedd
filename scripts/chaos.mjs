// @ts-check
/** Random faults under load: `npm run chaos -- --help`. */
import { runTypeScript } from './run-typescript.mjs'

await runTypeScript('test/chaos/main.ts', 'chaos')
