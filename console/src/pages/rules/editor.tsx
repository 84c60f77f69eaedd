import { useState } from 'preact/hooks'
import { ApiError } from '../../state/api.js'
import { putRuleInCandidate } from '../../state/candidates.js'
import { hasRoute } from '../../state/features.js'
import { linkTo, navigate } from '../../state/route.js'
import {
  createRule,
  currentRule,
  mergePatchOf,
  patchRule,
  putRule,
  type RuleDocument,
  withoutVersion,
} from '../../state/rules.js'
import { ruleSentence } from '../../text/rule-sentence.js'
import { t } from '../../text/translate.js'
import { Icon } from '../../ui/icon.js'
import { Empty } from '../../ui/states.js'
import { notify, notifyError } from '../../ui/toast.js'
import { HistoryDialog } from './history-dialog.js'
import { useLeaveWarning, useRuleDraft } from './rule-draft.js'
import { RuleForm } from './rule-form.js'
import { ConflictDialog, SaveDialog } from './save-dialogs.js'
import { useValidation } from './validation.js'
import { ValidationList } from './validation-list.js'
import { toYaml } from './yaml-text.js'

interface EditorProps {
  readonly ruleSetId: string
  /** The rule to edit, or to copy if `isNew`. */
  readonly rule: RuleDocument | undefined
  readonly wantedId: string | undefined
  readonly isNew: boolean
  readonly onSaved: () => void
}

const blank: RuleDocument = {
  id: 'new-rule',
  path: '/api/**',
  limitScope: 'IP',
  algorithm: 'TOKEN_BUCKET',
  bands: [{ label: 'per-minute', capacity: 100, window: '1m' }],
}

function startOf(rule: RuleDocument | undefined, isNew: boolean): RuleDocument {
  if (rule === undefined) return blank
  return isNew ? { ...withoutVersion(rule), id: `${rule.id}-copy` } : withoutVersion(rule)
}

export function RuleEditor({ ruleSetId, rule, wantedId, isNew, onSaved }: EditorProps) {
  /** The version that the edit is based on. */
  const [base, setBase] = useState(rule)
  const { draft, text, problem, show, edit } = useRuleDraft(() => startOf(rule, isNew))
  const [dialog, setDialog] = useState<'save' | 'history'>()
  const [theirs, setTheirs] = useState<RuleDocument | 'deleted'>()
  const before = isNew || base === undefined ? '' : toYaml(withoutVersion(base))
  const isChanged = isNew || toYaml(draft) !== before || problem !== ''
  useLeaveWarning(isChanged)

  // Validated as part of a set, so that the server checks everything that it checks when saving.
  const validation = useValidation(problem === '' ? { id: ruleSetId, rules: [draft] } : undefined, [draft, problem])
  const { isChecked } = validation
  const issues = validation.issues.map(({ path, message }) => ({
    path: path.replace(/^.*?rules\[0\]\.?/, ''),
    message,
  }))

  const finish = (saved: RuleDocument, previous: RuleDocument | undefined): void => {
    onSaved()
    navigate(['rules', ruleSetId])
    notify(t('saved', { rule: saved.id }), {
      ...(previous !== undefined && {
        undo: () =>
          patchRule(ruleSetId, saved, mergePatchOf(withoutVersion(saved), withoutVersion(previous)))
            .then(onSaved)
            .catch(notifyError),
      }),
    })
  }
  const save = async (): Promise<void> => {
    setDialog(undefined)
    try {
      if (isNew || base === undefined) finish(await createRule(ruleSetId, draft), undefined)
      else finish(await patchRule(ruleSetId, base, mergePatchOf(withoutVersion(base), draft)), base)
    } catch (error) {
      const isConflict = error instanceof ApiError && (error.status === 412 || error.status === 404)
      if (!isConflict || base === undefined || isNew) notifyError(error)
      else setTheirs((await currentRule(ruleSetId, base.id).catch(() => undefined)) ?? 'deleted')
    }
  }
  const tryOut = async (): Promise<void> => {
    try {
      await putRuleInCandidate(ruleSetId, draft)
      notify(t('candidateStarted', { set: ruleSetId }))
      navigate(['candidates', ruleSetId])
    } catch (error) {
      notifyError(error)
    }
  }
  const overwrite = async (): Promise<void> => {
    try {
      await putRule(ruleSetId, draft)
      finish(draft, undefined)
    } catch (error) {
      notifyError(error)
    }
  }

  if (!isNew && rule === undefined)
    return (
      <Empty title={t('ruleGone', { rule: wantedId ?? '' })}>
        <a href={linkTo(['rules'])}>{t('backToRules')}</a>
      </Empty>
    )
  const canSave = problem === '' && issues.length === 0 && isChecked && isChanged
  return (
    <>
      <nav class="crumbs" aria-label={t('breadcrumb')}>
        <a href={linkTo(['rules'])}>{t('rules')}</a> / <a href={linkTo(['rules', ruleSetId])}>{ruleSetId}</a>
      </nav>
      <div class="page-head">
        <h1>{isNew ? t('newRule') : (draft.name ?? draft.id)}</h1>
        <span class="spacer" />
        {!isNew && (
          <button type="button" class="button" onClick={() => setDialog('history')}>
            <Icon name="history" /> {t('history')}
          </button>
        )}
        <a class="button" href={linkTo(['rules', ruleSetId])}>
          {t('cancel')}
        </a>
        {hasRoute('GET /api/candidates') && (
          <button type="button" class="button" disabled={!canSave} title={t('tryAsCandidateHelp')} onClick={tryOut}>
            <Icon name="candidates" /> {t('tryAsCandidate')}
          </button>
        )}
        <button type="button" class="button primary" disabled={!canSave} onClick={() => setDialog('save')}>
          {t('review')}
        </button>
      </div>
      <p class="rule-sentence" aria-live="polite">
        {problem === '' ? ruleSentence(draft) : t('yamlInvalid')}
      </p>
      <div class="columns">
        <section class="card" aria-labelledby="form-title">
          <h2 id="form-title">{t('form')}</h2>
          <RuleForm draft={draft} issues={issues} isNew={isNew} isLocked={problem !== ''} onChange={show} />
        </section>
        <section class="card yaml-card" aria-labelledby="yaml-title">
          <h2 id="yaml-title">YAML</h2>
          <textarea
            class="mono yaml"
            aria-label="YAML"
            aria-describedby="issues"
            spellcheck={false}
            rows={Math.max(18, text.split('\n').length + 2)}
            value={text}
            onInput={(event) => edit(event.currentTarget.value)}
          />
          <ValidationList id="issues" problem={problem} issues={issues} isChecked={isChecked} valid={t('valid')} />
        </section>
      </div>
      {dialog === 'save' && (
        <SaveDialog before={before} after={toYaml(draft)} onClose={() => setDialog(undefined)} onSave={save} />
      )}
      {dialog === 'history' && (
        <HistoryDialog
          ruleSetId={ruleSetId}
          ruleId={draft.id}
          onClose={() => setDialog(undefined)}
          onRestored={onSaved}
          onPick={show}
        />
      )}
      {theirs !== undefined && (
        <ConflictDialog
          base={before}
          mine={toYaml(draft)}
          theirs={theirs === 'deleted' ? undefined : theirs}
          onKeepMine={() => {
            setTheirs(undefined)
            void overwrite()
          }}
          onTakeTheirs={() => {
            if (theirs === 'deleted') navigate(['rules', ruleSetId])
            else {
              setBase(theirs)
              show(withoutVersion(theirs))
            }
            setTheirs(undefined)
          }}
          onContinue={() => {
            // The next save is based on the version that the user has now seen.
            if (theirs !== 'deleted') setBase(theirs)
            setTheirs(undefined)
          }}
        />
      )}
    </>
  )
}
