import 'uplot/dist/uPlot.min.css'
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { language, theme } from '../state/preferences.js'
import { short, timeOfDay } from '../text/format.js'
import { t } from '../text/translate.js'

interface ChartSeries {
  readonly label: string
  /** The name of a CSS variable without dashes: `ok`, `bad`. */
  readonly color: string
  readonly values: readonly (number | null)[]
  /** Drawn as an area. Default: a line. */
  readonly isFilled?: boolean
}

export interface ChartProps {
  /** Described to screen readers. */
  readonly label: string
  /** Epoch seconds, or seconds from the start if `isRelative`. */
  readonly times: readonly number[]
  readonly series: readonly ChartSeries[]
  readonly height?: number
  readonly isRelative?: boolean
  /** Intervals to mark, in the unit of `times`. */
  readonly marks?: readonly { readonly from: number; readonly until: number }[]
  readonly format?: (value: number) => string
  /** Draws steps instead of straight lines. */
  readonly isStepped?: boolean
  readonly syncKey?: string
}

const cssColor = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()

/** A chart over time. Its data changes without drawing the axes again. */
export function Chart(props: ChartProps) {
  const { times, series, height = 200 } = props
  const host = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(undefined)
  const current = useRef(props)
  current.current = props
  const layout = [theme.value, language.value, height, ...series.map(({ label, color }) => label + color)].join()
  useEffect(() => {
    const element = host.current
    if (element === null) return
    const made = new uPlot(optionsOf(current, element.clientWidth, height), dataOf(current.current), element)
    plot.current = made
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      made.destroy()
    }
  }, [layout])
  useEffect(() => plot.current?.setData(dataOf(current.current)), [times, series])
  return <div class="chart" ref={host} role="img" aria-label={props.label} />
}

const dataOf = ({ times, series }: ChartProps): uPlot.AlignedData =>
  [times, ...series.map(({ values }) => values)] as unknown as uPlot.AlignedData

function optionsOf(current: { readonly current: ChartProps }, width: number, height: number): uPlot.Options {
  const { series, isRelative = false, format = short, isStepped = false, syncKey } = current.current
  const time = (at: number): string => (isRelative ? `${Number(at.toFixed(2))} s` : timeOfDay(at * 1_000))
  const grid = { stroke: cssColor('grid'), width: 1 }
  const axis = { stroke: cssColor('muted'), font: '11px Inter, system-ui, sans-serif', ticks: { show: false }, grid }
  const paths = isStepped ? { paths: uPlot.paths.stepped?.({ align: 1 }) as uPlot.Series.PathBuilder } : {}
  return {
    width,
    height,
    legend: { show: true, live: true },
    cursor: { y: false, ...(syncKey && { sync: { key: syncKey } }) },
    scales: { x: { time: !isRelative }, y: { range: (_, _min, max) => [0, Math.max(1, (max ?? 0) * 1.1)] } },
    axes: [
      { ...axis, size: 30, gap: 10, space: 90, values: (_, ticks) => ticks.map(time) },
      { ...axis, size: 54, gap: 8, values: (_, ticks) => ticks.map(format) },
    ],
    series: [
      { label: t('time'), value: (self, at) => shown(at ?? lastOf(self, 0), time) },
      ...series.map(({ label, color, isFilled = false }) => ({
        label,
        stroke: cssColor(color),
        width: 1.5,
        points: { show: false },
        value: (self: uPlot, value: number | null, index: number, at: number | null) =>
          shown(at === null ? lastOf(self, index) : value, format),
        ...(isFilled && { fill: `${cssColor(color)}2e` }),
        ...paths,
      })),
    ],
    hooks: { drawClear: [(self) => drawMarks(self, current.current.marks ?? [])] },
  }
}

const shown = (value: number | null | undefined, format: (value: number) => string): string =>
  value === null || value === undefined ? '–' : format(value)

/** Without a cursor, the legend shows the latest values. */
const lastOf = (plot: uPlot, index: number): number | null | undefined => plot.data[index]?.at(-1)

function drawMarks(plot: uPlot, marks: NonNullable<ChartProps['marks']>): void {
  const { ctx, bbox } = plot
  ctx.save()
  ctx.fillStyle = `${cssColor('warn')}33`
  for (const { from, until } of marks) {
    const left = Math.max(bbox.left, plot.valToPos(from, 'x', true))
    const right = Math.min(bbox.left + bbox.width, plot.valToPos(until, 'x', true))
    if (right > left) ctx.fillRect(left, bbox.top, right - left, bbox.height)
  }
  ctx.restore()
}
