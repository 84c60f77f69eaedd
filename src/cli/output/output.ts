/** Standard output. Colours are used only on a terminal; pipes and files receive plain text. */
import { relative, resolve } from 'node:path'
import type { WriteStream } from 'node:tty'
import { jsonText } from '../../core/json/source-text.js'

export type Colour = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'
export type Paint = (colour: Colour, text: string) => string

type Output = Pick<WriteStream, 'write'> & Partial<Pick<WriteStream, 'isTTY' | 'columns'>>

const codes: Record<Colour, readonly [number, number]> = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
}

export const plainText: Paint = (_, text) => text

const coloured: Paint = (colour, text) => `\u001b[${codes[colour][0]}m${text}\u001b[${codes[colour][1]}m`

export function paintFor(stream: Output, environment = process.env): Paint {
  return stream.isTTY && !environment.NO_COLOR ? coloured : plainText
}

export const widthOf = (stream: Output): number => (stream.isTTY && stream.columns ? stream.columns : 80)

export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

export function printJson(value: unknown): void {
  print(jsonText(value, '  '))
}

/** Prints JSON on one line, for large results that programs read. */
export function printData(value: unknown): void {
  print(JSON.stringify(value))
}

/** Text that clients have chosen, such as a key: without characters that control the terminal or the direction of writing. */
export const printable = (text: string): string => text.replaceAll(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, '?')

let reportsClosedOutput = false

/** For commands whose output must arrive completely. They report a closed pipe themselves, as a failure. */
export function reportClosedOutput(): void {
  reportsClosedOutput = true
}

/** Exits without an error if the output is closed early (`| head`, a closed terminal), as other Unix tools do. */
export function endQuietlyOnClosedPipe(): void {
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (reportsClosedOutput && stream === process.stdout) return
      if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error
      process.exit()
    })
}

/** A path for display: relative if it is inside the working directory, otherwise absolute. */
export function displayPath(path: string): string {
  const fromHere = relative(process.cwd(), resolve(path))
  return fromHere === '' || fromHere.startsWith('..') ? resolve(path) : fromHere
}
