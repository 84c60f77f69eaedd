/** Writes numbers of which those in a row are mostly the same: what was written last is kept. */
export function keepingLatest(write: (value: number) => string): (value: number) => string {
  let latest = Number.NaN
  let text = ''
  return (value) => {
    if (value !== latest) {
      latest = value
      text = write(value)
    }
    return text
  }
}
