import { useState } from 'preact/hooks'
import { linkTo } from '../../state/route.js'
import { createRule, deleteRule, patchRule, type RuleDocument } from '../../state/rules.js'
import type { Counts } from '../../state/statistics.js'
import { short } from '../../text/format.js'
import { ruleSentence } from '../../text/rule-sentence.js'
import { t } from '../../text/translate.js'
import { Icon } from '../../ui/icon.js'
import { notify, notifyError } from '../../ui/toast.js'

interface RuleRowProps {
  readonly ruleSetId: string
  readonly rule: RuleDocument
  readonly counts: Counts | undefined
  readonly onChanged: () => void
}

export function RuleRow({ ruleSetId, rule, counts, onChanged }: RuleRowProps) {
  const [isBusy, setBusy] = useState(false)
  const { denied = 0, shadowDenied = 0 } = counts ?? {}
  const isEnabled = rule.enabled ?? true
  const run = async (work: () => Promise<void>): Promise<void> => {
    setBusy(true)
    try {
      await work()
    } catch (error) {
      notifyError(error)
    }
    setBusy(false)
    onChanged()
  }
  const change = (patch: Partial<RuleDocument>, text: string): Promise<void> =>
    run(async () => {
      const changed = await patchRule(ruleSetId, rule, patch)
      const inverse = Object.fromEntries(Object.keys(patch).map((name) => [name, rule[name] ?? null]))
      notify(text, { undo: () => run(async () => void (await patchRule(ruleSetId, changed, inverse))) })
    })
  const remove = (): Promise<void> =>
    run(async () => {
      await deleteRule(ruleSetId, rule)
      notify(t('deleted', { rule: rule.id }), { undo: () => run(async () => void (await createRule(ruleSetId, rule))) })
    })
  return (
    <li class={isEnabled ? 'rule-row' : 'rule-row is-off'}>
      <label class="switch">
        <input
          type="checkbox"
          role="switch"
          aria-checked={isEnabled}
          checked={isEnabled}
          disabled={isBusy}
          aria-label={t('enableRule', { rule: rule.id })}
          onChange={() =>
            change({ enabled: !isEnabled }, t(isEnabled ? 'disabledRule' : 'enabledRule', { rule: rule.id }))
          }
        />
        <span aria-hidden="true" />
      </label>
      <div class="rule-main">
        <div class="group">
          <a class="rule-name" href={linkTo(['rules', ruleSetId, rule.id])}>
            {rule.name ?? rule.id}
          </a>
          {rule.name !== undefined && <code class="muted">{rule.id}</code>}
          {rule.mode === 'SHADOW' && <span class="badge badge-shadow">{t('shadow')}</span>}
          {(rule.enforcePercent ?? 100) < 100 && <span class="badge badge-warn">{rule.enforcePercent} %</span>}
          {!isEnabled && <span class="badge">{t('filter_disabled')}</span>}
          {(rule.priority ?? 0) !== 0 && <span class="badge">{t('priorityIs', { priority: rule.priority ?? 0 })}</span>}
          {denied > 0 && <span class="badge badge-bad">{t('rejectedCount', { count: short(denied) })}</span>}
          {shadowDenied > 0 && (
            <span class="badge badge-shadow">{t('shadowRejectedCount', { count: short(shadowDenied) })}</span>
          )}
        </div>
        <p class="muted">{ruleSentence(rule)}</p>
      </div>
      <div class="rule-actions">
        <button
          type="button"
          class="button small"
          disabled={isBusy || !isEnabled}
          onClick={() =>
            rule.mode === 'SHADOW'
              ? change({ mode: 'ENFORCE' }, t('nowEnforced', { rule: rule.id }))
              : change({ mode: 'SHADOW' }, t('nowShadow', { rule: rule.id }))
          }
        >
          {t(rule.mode === 'SHADOW' ? 'enforce' : 'toShadow')}
          <span class="visually-hidden"> {rule.id}</span>
        </button>
        <a
          class="button quiet square small"
          href={linkTo(['rules', ruleSetId, rule.id])}
          aria-label={t('editRule', { rule: rule.id })}
          title={t('edit')}
        >
          <Icon name="edit" size={16} />
        </a>
        <a
          class="button quiet square small"
          href={linkTo(['rules', ruleSetId], { copy: rule.id })}
          aria-label={t('duplicateRule', { rule: rule.id })}
          title={t('duplicate')}
        >
          <Icon name="copy" size={16} />
        </a>
        <button
          type="button"
          class="button quiet square small"
          disabled={isBusy}
          aria-label={t('deleteRule', { rule: rule.id })}
          title={t('delete')}
          onClick={remove}
        >
          <Icon name="trash" size={16} />
        </button>
      </div>
    </li>
  )
}
