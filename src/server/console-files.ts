import { readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Reply } from './request/route.js'

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
}

/**
 * Allows scripts, styles, workers and requests of the same origin only: no inline code, no other host, no framing by other
 * pages. `eval` and inline event handlers stay forbidden.
 */
const pageHeaders = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
}

interface ConsoleFile {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** Compressed by the first request for it, so that no single request compresses all files. */
  compressed?: Buffer
}

/** The built console. Files are read on the first request and kept in memory, so a request never names a path on the disk. */
export class ConsoleFiles {
  readonly #folder: string
  #files: Map<string, ConsoleFile> | undefined

  constructor(folder: string) {
    this.#folder = folder
  }

  /** The response with a file, such as `assets/index.js`. Undefined if there is no such file. */
  reply(name: string, acceptEncoding = '', status = 200): Reply | undefined {
    this.#files ??= readFiles(this.#folder)
    const file = this.#files.get(name)
    if (file === undefined) return undefined
    const isCompressed = /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/.test(acceptEncoding)
    const headers = isCompressed ? { ...file.headers, 'Content-Encoding': 'gzip' } : file.headers
    if (isCompressed) file.compressed ??= gzipSync(file.body, { level: 9 })
    return { status, headers, text: (isCompressed && file.compressed) || file.body }
  }
}

function readFiles(folder: string): Map<string, ConsoleFile> {
  const files = new Map<string, ConsoleFile>()
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const type = types[extname(entry.name)]
    if (!entry.isFile() || type === undefined) continue
    const path = join(entry.parentPath, entry.name)
    const name = path.slice(join(folder, '/').length).replaceAll('\\', '/')
    const isPage = name.endsWith('.html')
    // The page is at /console, without a final slash, so its relative URLs need the folder.
    const body = isPage ? Buffer.from(readFileSync(path, 'utf8').replaceAll('="./', '="/console/')) : readFileSync(path)
    const headers = {
      'Content-Type': type,
      Vary: 'Accept-Encoding',
      ...(isPage && pageHeaders),
      // The names of assets contain a digest of their content.
      ...(name.startsWith('assets/') && { 'Cache-Control': 'public, max-age=31536000, immutable' }),
    }
    files.set(name, { headers, body })
  }
  return files
}
