import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { FluxGateError } from '../../../core/errors.js'

const magic = [0x1f, 0x8b]

/** Decompresses gzip input, which is detected by its first bytes. Other input passes through unchanged. */
export async function* unpacked(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const source = chunks[Symbol.asyncIterator]()
  try {
    const first = await source.next()
    if (first.done) return
    let beginning = first.value
    while (beginning.length < magic.length) {
      const next = await source.next()
      if (next.done) break
      beginning = Buffer.concat([beginning, next.value])
    }
    const all = joined(beginning, source)
    if (magic.some((byte, i) => beginning[i] !== byte)) yield* all
    else yield* gunzipped(all)
  } finally {
    await source.return?.()
  }
}

async function* joined(first: Uint8Array, others: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first
  for (let next = await others.next(); !next.done; next = await others.next()) yield next.value
}

async function* gunzipped(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const packed = Readable.from(chunks, { objectMode: false })
  const plain = createGunzip({ chunkSize: 64 * 1024 })
  packed.on('error', (error) => plain.destroy(error))
  try {
    yield* packed.pipe(plain) as AsyncIterable<Buffer>
  } catch (cause) {
    const { code = '', message } = cause as NodeJS.ErrnoException
    if (!code.startsWith('Z_')) throw cause
    throw new FluxGateError('FLUXGATE_BULK_INPUT_INVALID', `The gzip input is corrupt: ${message}.`, { cause })
  } finally {
    packed.destroy()
    plain.destroy()
  }
}
