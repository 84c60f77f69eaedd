import type { Steps } from '../../core/scheduling/steps.js'

const linesPerStep = 1_000

/** The offsets at which the lines of a text start. */
export function* lineStartSteps(text: string): Steps<readonly number[]> {
  const starts = [0]
  for (const { index, 0: lineBreak } of text.matchAll(/\r\n|\r|\n/g)) {
    starts.push(index + lineBreak.length)
    if (starts.length % linesPerStep === 0) yield
  }
  return starts
}

/** The line and column of an offset, both from 1. */
export function positionOf(
  offset: number,
  lineStarts: readonly number[],
): { readonly line: number; readonly column: number } {
  let [low, high] = [0, lineStarts.length]
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if ((lineStarts[middle] as number) <= offset) low = middle
    else high = middle
  }
  return { line: low + 1, column: offset - (lineStarts[low] as number) + 1 }
}
