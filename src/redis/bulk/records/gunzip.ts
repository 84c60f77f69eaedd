import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { FluxGateError } from '../../../core/errors.js'

const magic = [0x1f, 0x8b]

/** Decompresses gzip input, which is detected by its first bytes. Other input passes through unchanged. */
export async function* gunzipIfNeeded(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const source = chunks[Symbol.asyncIterator]()
  try {
    const first = await source.next()
    if (first.done) return
    let head = first.value
    while (head.length < magic.length) {
      const next = await source.next()
      if (next.done) break
      head = Buffer.concat([head, next.value])
    }
    const all = concat(head, source)
    if (magic.some((byte, i) => head[i] !== byte)) yield* all
    else yield* decompress(all)
  } finally {
    await source.return?.()
  }
}

async function* concat(first: Uint8Array, others: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first
  for (let next = await others.next(); !next.done; next = await others.next()) yield next.value
}

async function* decompress(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const compressed = Readable.from(chunks, { objectMode: false })
  const gunzip = createGunzip({ chunkSize: 64 * 1024 })
  compressed.on('error', (error) => gunzip.destroy(error))
  try {
    yield* compressed.pipe(gunzip) as AsyncIterable<Buffer>
  } catch (cause) {
    const { code = '', message } = cause as NodeJS.ErrnoException
    if (!code.startsWith('Z_')) throw cause
    throw new FluxGateError('FLUXGATE_BULK_INPUT_INVALID', `The gzip input is corrupt: ${message}.`, { cause })
  } finally {
    compressed.destroy()
    gunzip.destroy()
  }
}
