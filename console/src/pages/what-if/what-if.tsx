import { useEffect, useRef, useState } from 'preact/hooks'
import { putCandidate } from '../../state/candidates.js'
import { hasRoute } from '../../state/features.js'
import { navigate } from '../../state/route.js'
import { loadRuleSets, plainSet, type RuleSetDocument, setWithOriginals } from '../../state/rules.js'
import { percent, whole } from '../../text/format.js'
import { t } from '../../text/translate.js'
import { Icon } from '../../ui/icon.js'
import { Empty, LoadState, useLoaded } from '../../ui/states.js'
import { notify, notifyError } from '../../ui/toast.js'
import { SetText, useSetDraft } from '../rules/set-text.js'
import { toYaml } from '../rules/yaml-text.js'
import { ComparisonView } from './comparison.js'
import type { Comparison, WhatIfReply, WhatIfRequest } from './protocol.js'

/** Compares the current rules with changed ones over an access log. The log stays in the browser. */
export function WhatIf() {
  const loaded = useLoaded(loadRuleSets, [])
  const { data: sets } = loaded
  if (sets === undefined) return <LoadState of={loaded} />
  if (sets.length === 0) return <Empty title={t('noSets')}>{t('noSetsHelp')}</Empty>
  return <Comparer sets={sets} />
}

function Comparer({ sets }: { readonly sets: readonly RuleSetDocument[] }) {
  const [setId, setSetId] = useState(sets[0]?.id ?? '')
  const set = sets.find(({ id }) => id === setId) as RuleSetDocument
  const [text, setText] = useState(() => toYaml(plainSet(set)))
  const [file, setFile] = useState<File>()
  const [progress, setProgress] = useState<{ read: number; lines: number }>()
  const [result, setResult] = useState<Comparison>()
  const [problem, setProblem] = useState('')
  const [isOver, setOver] = useState(false)
  const worker = useRef<Worker>(undefined)
  const stop = (): void => {
    worker.current?.terminate()
    worker.current = undefined
    setProgress(undefined)
  }
  useEffect(() => stop, [])
  const draft = useSetDraft(text)
  const run = (): void => {
    if (file === undefined || draft.set === undefined) return
    stop()
    setResult(undefined)
    setProblem('')
    setProgress({ read: 0, lines: 0 })
    const started = new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' })
    worker.current = started
    started.onmessage = ({ data }: MessageEvent<WhatIfReply>) => {
      if (data.kind === 'progress') {
        setProgress(data)
        return
      }
      stop()
      if (data.kind === 'done') setResult(data.comparison)
      else setProblem(data.message)
    }
    started.onerror = (event) => {
      stop()
      setProblem(event.message || t('workerFailed'))
    }
    const request: WhatIfRequest = { file, current: { ruleSets: [plainSet(set)] }, changed: { ruleSets: [draft.set] } }
    started.postMessage(request)
  }
  const startCandidate = async (): Promise<void> => {
    try {
      await putCandidate(setId, setWithOriginals(set, draft.set ?? {}))
      notify(t('candidateStarted', { set: setId }))
      navigate(['candidates', setId])
    } catch (error) {
      notifyError(error)
    }
  }
  const chosen = (next: File | undefined): void => {
    if (next === undefined) return
    setFile(next)
    setResult(undefined)
    setProblem('')
  }
  return (
    <>
      <div class="page-head">
        <h1>{t('whatif')}</h1>
        <span class="muted">{t('whatIfHelp')}</span>
        <span class="spacer" />
        <button
          type="button"
          class="button primary"
          disabled={file === undefined || !draft.isValid || progress !== undefined}
          onClick={run}
        >
          <Icon name="try" /> {t('compare')}
        </button>
      </div>
      <div class="columns">
        <section class="card log-card" aria-labelledby="log-title">
          <h2 id="log-title">{t('log')}</h2>
          <label
            class={isOver ? 'drop is-over' : 'drop'}
            onDragOver={(event) => {
              event.preventDefault()
              setOver(true)
            }}
            onDragLeave={() => setOver(false)}
            onDrop={(event) => {
              event.preventDefault()
              setOver(false)
              chosen(event.dataTransfer?.files[0])
            }}
          >
            <Icon name="upload" size={26} />
            <strong>{file === undefined ? t('dropLog') : file.name}</strong>
            <span class="muted small">
              {file === undefined ? t('logFormats') : t('megabytes', { size: (file.size / 1e6).toFixed(1) })}
            </span>
            <input
              type="file"
              class="visually-hidden"
              onChange={({ currentTarget: { files } }) => chosen(files?.[0])}
            />
          </label>
          <p class="muted small">{t('logStays')}</p>
        </section>
        <section class="card" aria-labelledby="changed-title">
          <div class="page-head">
            <h2 id="changed-title">{t('changedRules')}</h2>
            <span class="spacer" />
            <select
              class="choice"
              aria-label={t('ruleSet')}
              value={setId}
              onChange={({ currentTarget: { value } }) => {
                setSetId(value)
                setText(toYaml(plainSet(sets.find(({ id }) => id === value) as RuleSetDocument)))
              }}
            >
              {sets.map(({ id }) => (
                <option key={id}>{id}</option>
              ))}
            </select>
          </div>
          <SetText label={t('changedRules')} draft={draft} rows={14} onChange={setText} />
        </section>
      </div>
      {progress !== undefined && (
        <div class="card group">
          <progress value={progress.read} max={Math.max(1, file?.size ?? 1)} aria-label={t('progress')} />
          <span class="muted number" role="status">
            {t('linesRead', {
              count: whole(progress.lines),
              share: percent(Math.min(1, progress.read / Math.max(1, file?.size ?? 1))),
            })}
          </span>
          <button type="button" class="button" onClick={stop}>
            {t('cancel')}
          </button>
        </div>
      )}
      {problem && (
        <p class="banner" role="alert">
          {problem}
        </p>
      )}
      {result && <ComparisonView comparison={result} />}
      {result && hasRoute('GET /api/candidates') && (
        <div class="group">
          <button type="button" class="button" disabled={!draft.isValid} onClick={startCandidate}>
            <Icon name="candidates" /> {t('tryAsCandidate')}
          </button>
          <span class="muted small">{t('tryAsCandidateHelp')}</span>
        </div>
      )}
    </>
  )
}
