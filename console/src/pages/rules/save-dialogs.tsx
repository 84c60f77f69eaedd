import { type RuleDocument, withoutVersion } from '../../state/rules.js'
import { dateAndTime } from '../../text/format.js'
import { t } from '../../text/translate.js'
import { Dialog } from '../../ui/dialog.js'
import { Diff } from '../../ui/diff.js'
import { toYaml } from './yaml-text.js'

interface SaveProps {
  readonly before: string
  readonly after: string
  readonly onClose: () => void
  readonly onSave: () => void
}

export const SaveDialog = ({ before, after, onClose, onSave }: SaveProps) => (
  <Dialog title={t('reviewTitle')} onClose={onClose} isWide>
    <Diff before={before} after={after} />
    <p class="muted">{t('takesEffectOnSave')}</p>
    <div class="dialog-foot">
      <button type="button" class="button" onClick={onClose}>
        {t('cancel')}
      </button>
      <button type="button" class="button primary" onClick={onSave}>
        {t('save')}
      </button>
    </div>
  </Dialog>
)

interface ConflictProps {
  readonly base: string
  readonly mine: string
  /** Undefined if the rule was deleted. */
  readonly theirs: RuleDocument | undefined
  readonly onKeepMine: () => void
  readonly onTakeTheirs: () => void
  readonly onContinue: () => void
}

/** Shown if another user has changed the rule in the meantime. Nothing is lost until the user chooses. */
export const ConflictDialog = ({ base, mine, theirs, onKeepMine, onTakeTheirs, onContinue }: ConflictProps) => (
  <Dialog title={t('conflict')} onClose={onContinue} isWide>
    <p>
      {theirs === undefined
        ? t('conflictDeleted')
        : t('conflictHelp', { time: theirs.updatedAt === undefined ? '?' : dateAndTime(theirs.updatedAt) })}
    </p>
    <div class="columns">
      <section>
        <h3>{t('yourChange')}</h3>
        <Diff before={base} after={mine} />
      </section>
      <section>
        <h3>{t('theirChange')}</h3>
        {theirs !== undefined && <Diff before={base} after={toYaml(withoutVersion(theirs))} />}
      </section>
    </div>
    <div class="dialog-foot">
      <button type="button" class="button" onClick={onContinue}>
        {t('continueEditing')}
      </button>
      <button type="button" class="button" onClick={onTakeTheirs}>
        {t('useTheirs')}
      </button>
      <button type="button" class="button primary" onClick={onKeepMine}>
        {t('overwrite')}
      </button>
    </div>
  </Dialog>
)
