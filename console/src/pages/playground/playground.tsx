import { useEffect, useMemo, useState } from 'preact/hooks'
import { algorithmTraits } from '../../../../src/core/algorithm-traits.js'
import type { Run, Simulation } from '../../../../src/simulate/simulate-bands.js'
import { replaceQuery, route, updateUrl } from '../../state/route.js'
import { exactly, percent, whole } from '../../text/format.js'
import { t } from '../../text/translate.js'
import { Icon } from '../../ui/icon.js'
import { notify } from '../../ui/toast.js'
import { Bars, columnCount, columnsOf } from './bars.js'
import { Drawing } from './drawing.js'
import { limits, parseScenario, runScenario, type Scenario, scenarioQuery, trafficKinds, windows } from './scenario.js'

/** All algorithms on the same traffic, computed in the browser by the code that decides in production. */
export function Playground() {
  const query = route.value.query.toString()
  const scenario = useMemo(() => parseScenario(new URLSearchParams(query)), [query])
  const [result, setResult] = useState<Simulation>()
  useEffect(() => {
    let isCurrent = true
    void runScenario(scenario).then((next) => isCurrent && setResult(next))
    return () => {
      isCurrent = false
    }
  }, [scenario])
  const change = (part: Partial<Scenario>): void => replaceQuery(scenarioQuery({ ...scenario, ...part }))
  const hasLoad = scenario.traffic === 'steady' || scenario.traffic === 'poisson'
  return (
    <>
      <div class="page-head">
        <h1>{t('playground')}</h1>
        <span class="muted">{t('playgroundHelp')}</span>
        <span class="spacer" />
        <button type="button" class="button" onClick={copyLink}>
          <Icon name="link" /> {t('copyLink')}
        </button>
      </div>
      <section class="card" aria-label={t('traffic')}>
        <fieldset class="group kinds">
          <legend class="visually-hidden">{t('traffic')}</legend>
          {trafficKinds.map((kind) => (
            <button
              type="button"
              key={kind}
              class="button"
              aria-pressed={kind === scenario.traffic}
              onClick={() => change({ traffic: kind })}
            >
              {t(`traffic_${kind}`)}
            </button>
          ))}
        </fieldset>
        <p class="muted">{t(`traffic_${scenario.traffic}_help`)}</p>
        <div class="field-row sliders">
          <Slider name="capacity" value={scenario.capacity} text={whole(scenario.capacity)} onChange={change} />
          <Slider
            name="windowMs"
            value={scenario.windowMs}
            text={exactly(scenario.windowMs)}
            step={100}
            onChange={change}
          />
          <Slider name="hold" value={scenario.hold} text={exactly(scenario.hold)} step={50} onChange={change} />
          {hasLoad && (
            <Slider name="load" value={scenario.load} text={percent(scenario.load / 100)} step={5} onChange={change} />
          )}
        </div>
        {scenario.traffic === 'drawn' && <Drawing counts={scenario.drawn} onChange={(drawn) => change({ drawn })} />}
      </section>
      {result && <Results result={result} scenario={scenario} />}
    </>
  )
}

function copyLink(): void {
  updateUrl()

  navigator.clipboard?.writeText(location.href).then(
    () => notify(t('linkCopied')),
    () => notify(location.href),
  )
}

interface SliderProps {
  readonly name: keyof typeof limits
  readonly value: number
  readonly text: string
  readonly step?: number
  readonly onChange: (part: Partial<Scenario>) => void
}

function Slider({ name, value, text, step = 1, onChange }: SliderProps) {
  const [min, max] = limits[name]
  return (
    <label class="field">
      <span>
        {t(name)} <span class="slider-value">{text}</span>
      </span>
      <input
        type="range"
        min={min}
        max={max}
        step={step}
        value={value}
        aria-valuetext={text}
        onInput={(event) => onChange({ [name]: Number(event.currentTarget.value) })}
      />
    </label>
  )
}

function Results({ result, scenario }: { readonly result: Simulation; readonly scenario: Scenario }) {
  const { runs, offered, bucketMs, windowMs } = result
  const durationMs = windows * windowMs
  const columns = columnCount(scenario.capacity, windows)
  const most = Math.max(1, ...columnsOf(offered.buckets, bucketMs, durationMs, columns).released)
  const chart = (label: string, { buckets }: Run) => (
    <Bars {...{ label, buckets, bucketMs, columns, windowMs, durationMs, most }} />
  )
  return (
    <div class="algorithms">
      <p class="muted legend">
        {(['ok', 'bad', 'warn'] as const).map((color) => (
          <span key={color}>
            <span class={`key key-${color}`} /> {t(legend[color])}
          </span>
        ))}
        <span>{t('barsUnit', { time: exactly(durationMs / columns) })}</span>
      </p>
      <section class="card algorithm offered" aria-labelledby="offered">
        <div class="algorithm-text">
          <h2 id="offered">{t('offeredTraffic')}</h2>
          <p class="muted small">{t('offeredHelp')}</p>
          <dl class="facts">
            <Fact name={t('requestsRead')} value={whole(offered.offered)} kind="" />
            <Fact
              name={t('mostInWindow')}
              value={t('ofCapacity', { count: whole(offered.mostInAnyWindow), capacity: whole(scenario.capacity) })}
              kind={offered.mostInAnyWindow > scenario.capacity ? 'bad' : ''}
            />
          </dl>
        </div>
        {chart(t('offered', { count: whole(offered.offered), time: exactly(durationMs) }), offered)}
      </section>
      {runs.map((run) => (
        <AlgorithmCard key={run.band.algorithm} run={run} capacity={scenario.capacity}>
          {chart(t('barsLabel', { algorithm: run.band.algorithm, allowed: run.allowed, rejected: run.rejected }), run)}
        </AlgorithmCard>
      ))}
    </div>
  )
}

const legend = { ok: 'released', bad: 'rejected', warn: 'delayed' } as const

interface CardProps {
  readonly run: Simulation['runs'][number]
  readonly capacity: number
  readonly children: preact.ComponentChildren
}

function AlgorithmCard({ run, capacity, children }: CardProps) {
  const { algorithm } = run.band
  const limitsProgress = algorithmTraits[algorithm].takesHolds ?? false
  const most = limitsProgress ? (run.mostInProgress ?? 0) : run.mostInAnyWindow
  return (
    <section class="card algorithm" aria-labelledby={`algorithm-${algorithm}`}>
      <div class="algorithm-text">
        <h2 id={`algorithm-${algorithm}`}>{algorithm}</h2>
        <p class="muted small">{t(`help_${algorithm as 'TOKEN_BUCKET'}`)}</p>
        <dl class="facts">
          <Fact
            name={t('allowed')}
            value={`${whole(run.allowed)} (${percent(run.offered === 0 ? 0 : run.allowed / run.offered)})`}
            kind="ok"
          />
          <Fact name={t('rejected')} value={whole(run.rejected)} kind={run.rejected > 0 ? 'bad' : ''} />
          {run.delayed > 0 && <Fact name={t('meanDelay')} value={exactly(run.meanDelayMs)} kind="warn" />}
          <Fact
            name={t(limitsProgress ? 'mostAtOnce' : 'mostInWindow')}
            value={t('ofCapacity', { count: whole(most), capacity: whole(capacity) })}
            kind={most > capacity ? 'bad' : ''}
          />
        </dl>
      </div>
      {children}
    </section>
  )
}

const Fact = ({ name, value, kind }: { readonly name: string; readonly value: string; readonly kind: string }) => (
  <div>
    <dt class="muted small">{name}</dt>
    <dd class={`number ${kind}`}>{value}</dd>
  </div>
)
