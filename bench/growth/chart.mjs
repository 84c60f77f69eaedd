// @ts-check
/**
 * Line charts as SVG, without dependencies. Colours follow the colour scheme of the reader, light or dark.
 *
 * @typedef {object} Line
 * @property {string} name
 * @property {readonly { low: number, median: number, high: number }[]} points one per position on the x axis
 *
 * @typedef {object} Chart
 * @property {string} title
 * @property {string} xTitle
 * @property {string} yTitle
 * @property {readonly number[]} x
 * @property {readonly Line[]} lines
 */

const [width, height] = [760, 400]
const plot = { left: 72, right: 28, top: 84, bottom: 60 }
const inner = { width: width - plot.left - plot.right, height: height - plot.top - plot.bottom }
const yTicks = 5

const style = `
  .page { fill: #ffffff }
  text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: #57606a }
  .title { font-size: 16px; font-weight: 600; fill: #1f2328 }
  .grid { stroke: #d8dee4; stroke-width: 1 }
  .axis { stroke: #8c959f; stroke-width: 1 }
  .line { fill: none; stroke-width: 2.5; stroke-linejoin: round }
  .spread { fill-opacity: 0.15 }
  .c0 { stroke: #0969da } .f0 { fill: #0969da }
  .c1 { stroke: #bc4c00 } .f1 { fill: #bc4c00 }
  .c2 { stroke: #1a7f37 } .f2 { fill: #1a7f37 }
  .c3 { stroke: #8250df } .f3 { fill: #8250df }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 }
    text { fill: #9198a1 }
    .title { fill: #f0f6fc }
    .grid { stroke: #262c36 }
    .axis { stroke: #656c76 }
    .c0 { stroke: #4493f8 } .f0 { fill: #4493f8 }
    .c1 { stroke: #f0883e } .f1 { fill: #f0883e }
    .c2 { stroke: #3fb950 } .f2 { fill: #3fb950 }
    .c3 { stroke: #ab7df8 } .f3 { fill: #ab7df8 }
  }`

/** Draws a chart with a logarithmic x axis and a y axis that starts at zero. */
export function drawChart(/** @type {Chart} */ { title, xTitle, yTitle, x, lines }) {
  const highest = Math.max(...lines.flatMap(({ points }) => points.map(({ high }) => high)))
  const step = niceStep(highest / yTicks)
  const top = Math.max(step, Math.ceil((highest * 1.02) / step) * step)
  const [from, to] = [Math.log(x[0] ?? 1), Math.log(x.at(-1) ?? 1)]
  const atX = (/** @type {number} */ value) =>
    round(plot.left + (to === from ? 0.5 : (Math.log(value) - from) / (to - from)) * inner.width)
  const atY = (/** @type {number} */ value) => round(plot.top + (1 - value / top) * inner.height)

  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(title)}">`,
    `<style>${style}\n</style>`,
    `<rect class="page" width="${width}" height="${height}" rx="6"/>`,
    `<text class="title" x="${plot.left - 48}" y="32">${escaped(title)}</text>`,
  ]
  for (let tick = 0; tick <= Math.round(top / step); tick++) {
    const value = tick * step
    const y = atY(value)
    const kind = tick === 0 ? 'axis' : 'grid'
    parts.push(`<line class="${kind}" x1="${plot.left}" x2="${width - plot.right}" y1="${y}" y2="${y}"/>`)
    parts.push(`<text x="${plot.left - 10}" y="${round(y + 4.5)}" text-anchor="end">${tickText(value, step)}</text>`)
  }
  for (const value of x) {
    const at = atX(value)
    parts.push(`<line class="axis" x1="${at}" x2="${at}" y1="${atY(0)}" y2="${round(atY(0) + 5)}"/>`)
    parts.push(`<text x="${at}" y="${round(atY(0) + 21)}" text-anchor="middle">${shortNumber(value)}</text>`)
  }
  parts.push(
    `<text x="${round(plot.left + inner.width / 2)}" y="${height - 14}" text-anchor="middle">${escaped(xTitle)}</text>`,
  )
  const middle = round(plot.top + inner.height / 2)
  parts.push(
    `<text x="20" y="${middle}" text-anchor="middle" transform="rotate(-90 20 ${middle})">${escaped(yTitle)}</text>`,
  )

  let legendX = plot.left - 48
  for (const [i, { name, points }] of lines.entries()) {
    const at = (/** @type {'low' | 'median' | 'high'} */ which) =>
      points.map((point, p) => `${atX(x[p] ?? 1)},${atY(point[which])}`)
    parts.push(`<polygon class="spread f${i}" points="${[...at('high'), ...at('low').reverse()].join(' ')}"/>`)
    parts.push(`<polyline class="line c${i}" points="${at('median').join(' ')}"/>`)
    for (const point of at('median')) {
      const [cx, cy] = point.split(',')
      parts.push(`<circle class="f${i}" cx="${cx}" cy="${cy}" r="3.5"/>`)
    }
    parts.push(`<circle class="f${i}" cx="${legendX + 5}" cy="55" r="5"/>`)
    parts.push(`<text x="${legendX + 17}" y="59.5">${escaped(name)}</text>`)
    legendX += 44 + name.length * 7
  }
  return `${[...parts, '</svg>'].join('\n')}\n`
}

const round = (/** @type {number} */ value) => Math.round(value * 10) / 10

/** Returns 1, 2 or 5 times a power of ten. */
function niceStep(/** @type {number} */ least) {
  const power = 10 ** Math.floor(Math.log10(least))
  return ([1, 2, 5].find((factor) => factor * power >= least) ?? 10) * power
}

function tickText(/** @type {number} */ value, /** @type {number} */ step) {
  return value.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)))
}

/** Returns numbers as 10, 1k or 10M. */
export function shortNumber(/** @type {number} */ value) {
  if (value >= 1e6) return `${value / 1e6}M`
  return value >= 1e3 ? `${value / 1e3}k` : `${value}`
}

const escaped = (/** @type {string} */ text) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
