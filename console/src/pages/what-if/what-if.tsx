import { useState } from 'preact/hooks'
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
import { LogDrop } from './log-drop.js'
import { useComparison } from './use-comparison.js'

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
  const { progress, result, problem, start, stop } = useComparison()
  const draft = useSetDraft(text)
  const run = (): void => {
    if (file === undefined || draft.set === undefined) return
    start({ file, current: { ruleSets: [plainSet(set)] }, changed: { ruleSets: [draft.set] } })
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
  const choose = (next: File): void => {
    stop()
    setFile(next)
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
          <LogDrop file={file} onChoose={choose} />
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
