import { useEffect, useMemo, useState } from 'preact/hooks'
import { replaceQuery, route } from '../../state/route.js'
import { duration, percent, whole } from '../../text/format.js'
import { t } from '../../text/translate.js'
import { Icon } from '../../ui/icon.js'
import { notify } from '../../ui/toast.js'
import { Bars, columnCount, columnsOf } from './bars.js'
import { Drawing } from './drawing.js'
import {
  limits,
  parseScenario,
  runScenario,
  type Scenario,
  type ScenarioResult,
  type ScenarioRun,
  scenarioQuery,
  trafficKinds,
  windows,
} from './scenario.js'

/** All algorithms on the same traffic, computed in the browser by the code that decides in production. */
export function Playground() {
  const query = route.value.query.toString()
  const scenario = useMemo(() => parseScenario(new URLSearchParams(query)), [query])
  const [result, setResult] = useState<ScenarioResult>()
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
        <button
          type="button"
          class="button"
          onClick={() =>
            navigator.clipboard?.writeText(location.href).then(
              () => notify(t('linkCopied')),
              () => notify(location.href),
            )
          }
        >
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
            text={duration(scenario.windowMs)}
            step={100}
            onChange={change}
          />
          <Slider name="hold" value={scenario.hold} text={duration(scenario.hold)} step={50} onChange={change} />
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

function Results({ result, scenario }: { readonly result: ScenarioResult; readonly scenario: Scenario }) {
  const { runs, offered, bucketMs } = result
  const durationMs = windows * scenario.windowMs
  const columns = columnCount(scenario.capacity, windows)
  const most = Math.max(1, ...columnsOf(offered.buckets, bucketMs, durationMs, columns).released)
  return (
    <div class="algorithms">
      <p class="muted legend">
        {(['ok', 'bad', 'warn'] as const).map((color) => (
          <span key={color}>
            <span class={`key key-${color}`} /> {t(legend[color])}
          </span>
        ))}
        <span>{t('offered', { count: whole(offered.offered), time: duration(durationMs) })}</span>
      </p>
      {runs.map((run) => (
        <AlgorithmCard key={run.band.algorithm} run={run} capacity={scenario.capacity} offered={offered.offered}>
          <Bars
            label={t('barsLabel', { algorithm: run.band.algorithm, allowed: run.allowed, rejected: run.rejected })}
            buckets={run.buckets}
            bucketMs={run.bucketMs}
            columns={columns}
            windowMs={scenario.windowMs}
            durationMs={durationMs}
            most={most}
          />
        </AlgorithmCard>
      ))}
    </div>
  )
}

const legend = { ok: 'released', bad: 'rejected', warn: 'delayed' } as const

interface CardProps {
  readonly run: ScenarioRun
  readonly capacity: number
  readonly offered: number
  readonly children: preact.ComponentChildren
}

function AlgorithmCard({ run, capacity, offered, children }: CardProps) {
  const { algorithm } = run.band
  const isOver = run.mostInAnyWindow > capacity
  return (
    <section class="card algorithm" aria-labelledby={`algorithm-${algorithm}`}>
      <div class="algorithm-text">
        <h2 id={`algorithm-${algorithm}`}>{algorithm}</h2>
        <p class="muted small">{t(`help_${algorithm as 'TOKEN_BUCKET'}`)}</p>
        <dl class="facts">
          <Fact
            name={t('allowed')}
            value={`${whole(run.allowed)} (${percent(offered === 0 ? 0 : run.allowed / offered)})`}
            kind="ok"
          />
          <Fact name={t('rejected')} value={whole(run.rejected)} kind={run.rejected > 0 ? 'bad' : ''} />
          {run.delayed > 0 && <Fact name={t('meanDelay')} value={duration(run.meanDelayMs)} kind="warn" />}
          <Fact
            name={t(algorithm === 'CONCURRENCY' ? 'mostAtOnce' : 'mostInWindow')}
            value={t('ofCapacity', { count: whole(run.mostInAnyWindow), capacity: whole(capacity) })}
            kind={isOver ? 'bad' : ''}
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
