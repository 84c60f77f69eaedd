import { useState } from 'preact/hooks'
import {
  type CandidateDocument,
  dropCandidate,
  loadReport,
  promoteCandidate,
  putCandidate,
} from '../../state/candidates.js'
import { plainSet, putSet, type RuleSetDocument } from '../../state/rules.js'
import { whole } from '../../text/format.js'
import { t } from '../../text/translate.js'
import { Dialog } from '../../ui/dialog.js'
import { Diff } from '../../ui/diff.js'
import { Icon } from '../../ui/icon.js'
import { LoadState, useLoaded } from '../../ui/states.js'
import { notify, notifyError } from '../../ui/toast.js'
import { toYaml } from '../rules/yaml-text.js'
import { ReportView } from './report-view.js'

interface CandidateViewProps {
  readonly set: RuleSetDocument
  readonly candidate: CandidateDocument
  readonly onChanged: () => void
  readonly onEdit: () => void
}

const reportEveryMs = 2_000

/** The report of one candidate as it grows, and the difference to the current rules. */
export function CandidateView({ set, candidate, onChanged, onEdit }: CandidateViewProps) {
  const [isPromoting, setPromoting] = useState(false)
  const report = useLoaded(
    (signal) => loadReport(set.id, signal),
    [set.id, set.version, candidate.version],
    reportEveryMs,
  )
  const run = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work()
    } catch (error) {
      notifyError(error)
    }
    onChanged()
  }
  const drop = (): Promise<void> =>
    run(async () => {
      await dropCandidate(set.id)
      notify(t('candidateDropped', { set: set.id }), {
        undo: () => run(() => putCandidate(set.id, plainSet(candidate))),
      })
    })
  const promote = (): Promise<void> => {
    setPromoting(false)
    return run(async () => {
      const promoted = await promoteCandidate(set)
      notify(t('candidatePromoted', { set: set.id }), { undo: () => run(() => putSet(set, promoted.version)) })
    })
  }
  const before = toYaml(plainSet(set))
  const after = toYaml({ ...plainSet(candidate), id: set.id })
  return (
    <>
      <div class="page-head">
        <h2>{t('candidateOf', { set: set.id })}</h2>
        <span class="spacer" />
        <button type="button" class="button" onClick={drop}>
          <Icon name="trash" /> {t('drop')}
        </button>
        <button type="button" class="button" onClick={onEdit}>
          <Icon name="edit" /> {t('edit')}
        </button>
        <button type="button" class="button primary" disabled={before === after} onClick={() => setPromoting(true)}>
          <Icon name="check" /> {t('promote')}
        </button>
      </div>
      {report.data === undefined && <LoadState of={report} />}
      {report.data !== undefined && <ReportView report={report.data} rules={[...candidate.rules, ...set.rules]} />}
      <section class="card" aria-labelledby="candidate-change">
        <h2 id="candidate-change">{t('candidateChange')}</h2>
        <Diff before={before} after={after} />
      </section>
      {isPromoting && (
        <Dialog title={t('promoteTitle', { set: set.id })} onClose={() => setPromoting(false)} isWide>
          {report.data !== undefined && (
            <p>
              {t('promoteHelp', {
                decisions: whole(report.data.decisions),
                more: whole(report.data.rejectedThenOnly),
                fewer: whole(report.data.rejectedNowOnly),
              })}
            </p>
          )}
          <Diff before={before} after={after} />
          <p class="muted">{t('promoteUndo')}</p>
          <div class="dialog-foot">
            <button type="button" class="button" onClick={() => setPromoting(false)}>
              {t('cancel')}
            </button>
            <button type="button" class="button primary" onClick={promote}>
              {t('promote')}
            </button>
          </div>
        </Dialog>
      )}
    </>
  )
}
