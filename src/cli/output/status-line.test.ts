import { expect, it } from 'vitest'
import { statusLine } from './status-line.js'

function linesOn(isTTY: boolean): string[] {
  const written: string[] = []
  const line = statusLine({ isTTY, write: (text: string) => written.push(text) > 0 })
  line.show('reading limits.yaml')
  line.show('writing 2 rules')
  line.clear()
  return written
}

it('replaces its line on a terminal and removes it at the end', () => {
  expect(linesOn(true)).toEqual(['\r\u001b[Kreading limits.yaml …', '\r\u001b[Kwriting 2 rules …', '\r\u001b[K'])
})

it('writes nothing if the stream is not a terminal', () => {
  expect(linesOn(false)).toEqual([])
})
