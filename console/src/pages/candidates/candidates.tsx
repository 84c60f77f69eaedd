import { useEffect, useState } from 'preact/hooks'
import { type CandidateDocument, loadCandidates } from '../../state/candidates.js'
import { reloads } from '../../state/events.js'
import { linkTo, navigate, route } from '../../state/route.js'
import { loadRuleSets, type RuleSetDocument } from '../../state/rules.js'
import { t } from '../../text/translate.js'
import { Icon } from '../../ui/icon.js'
import { Empty, LoadState, useLoaded } from '../../ui/states.js'
import { CandidateDialog } from './candidate-dialog.js'
import { CandidateView } from './candidate-view.js'

interface Loaded {
  readonly sets: readonly RuleSetDocument[]
  readonly candidates: readonly CandidateDocument[]
}

async function load(signal: AbortSignal): Promise<Loaded> {
  const [sets, candidates] = await Promise.all([loadRuleSets(signal), loadCandidates(signal)])
  return { sets, candidates }
}

/** `#/candidates`, `#/candidates/<set>`: rule sets that are evaluated alongside those in effect, without effect. */
export function Candidates() {
  const loaded = useLoaded(load, [])
  const { data, reload } = loaded
  const seen = reloads.value
  useEffect(() => {
    if (seen > 0) reload()
  }, [seen])
  const [editing, setEditing] = useState<RuleSetDocument>()
  if (data === undefined) return <LoadState of={loaded} />
  const { sets, candidates } = data
  const [, wanted] = route.value.segments
  const running = candidates.flatMap((candidate) => {
    const set = sets.find(({ id }) => id === candidate.candidateOf)
    return set === undefined ? [] : [{ set, candidate }]
  })
  const shown = running.find(({ set }) => set.id === wanted) ?? running[0]
  const others = sets.filter(({ id }) => !running.some(({ set }) => set.id === id))
  return (
    <>
      <div class="page-head">
        <h1>{t('candidates')}</h1>
        <span class="muted">{t('candidatesHelp')}</span>
      </div>
      {running.length > 1 && (
        <nav class="group" aria-label={t('candidates')}>
          {running.map(({ set }) => (
            <a
              key={set.id}
              class="button wrap"
              href={linkTo(['candidates', set.id])}
              aria-current={set === shown?.set ? 'page' : undefined}
            >
              {set.id}
            </a>
          ))}
        </nav>
      )}
      {shown !== undefined && (
        <CandidateView key={shown.set.id} {...shown} onChanged={reload} onEdit={() => setEditing(shown.set)} />
      )}
      {running.length === 0 && (
        <section class="card">
          <Empty title={t('noCandidates')}>{t(sets.length === 0 ? 'noSetsHelp' : 'noCandidatesHelp')}</Empty>
        </section>
      )}
      {others.length > 0 && (
        <section class="card" aria-labelledby="start-candidate">
          <h2 id="start-candidate">{t('startCandidate')}</h2>
          <p class="muted">{t('startCandidateHelp')}</p>
          <div class="group">
            {others.map((set) => (
              <button key={set.id} type="button" class="button wrap" onClick={() => setEditing(set)}>
                <Icon name="plus" size={15} /> <span>{set.id}</span>
              </button>
            ))}
          </div>
        </section>
      )}
      {editing !== undefined && (
        <CandidateDialog
          set={editing}
          candidate={candidates.find(({ candidateOf }) => candidateOf === editing.id)}
          onClose={() => setEditing(undefined)}
          onDone={() => {
            setEditing(undefined)
            navigate(['candidates', editing.id])
            reload()
          }}
        />
      )}
    </>
  )
}
