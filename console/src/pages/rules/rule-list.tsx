import { useEffect, useMemo, useState } from 'preact/hooks'
import { get } from '../../state/api.js'
import { linkTo } from '../../state/route.js'
import type { RuleDocument, RuleSetDocument } from '../../state/rules.js'
import type { Counts, Summary } from '../../state/statistics.js'
import { whole } from '../../text/format.js'
import { t } from '../../text/translate.js'
import { Icon } from '../../ui/icon.js'
import { Empty, useLoaded } from '../../ui/states.js'
import { HistoryDialog } from './history-dialog.js'
import { ImportDialog } from './import-dialog.js'
import { NewSetDialog } from './new-set-dialog.js'
import { RuleRow } from './rule-row.js'
import { downloadSet } from './yaml-text.js'

interface RuleListProps {
  readonly sets: readonly RuleSetDocument[]
  readonly initialSet: string | undefined
  readonly reload: () => void
  /** Changes when the rules were reloaded by anyone. */
  readonly reloads: number
}

/** A set may have many thousand rules. */
const rowsPerStep = 100

const filters = ['all', 'enabled', 'disabled', 'shadow'] as const
type Filter = (typeof filters)[number]
const orders = ['priority', 'name', 'rejections', 'changed'] as const
type Order = (typeof orders)[number]

const matches = (filter: Filter, { enabled = true, mode }: RuleDocument): boolean =>
  filter === 'all' || (filter === 'shadow' ? mode === 'SHADOW' : enabled === (filter === 'enabled'))

export function RuleList({ sets, initialSet, reload, reloads }: RuleListProps) {
  const [search, setSearch] = useState('')
  const [filter, setFilter] = useState<Filter>('all')
  const [order, setOrder] = useState<Order>('priority')
  const [shownRows, setShownRows] = useState(rowsPerStep)
  const [onlySet, setOnlySet] = useState(initialSet ?? '')
  const [dialog, setDialog] = useState<{ name: 'import' | 'newSet' } | { name: 'history'; set: string }>()
  const statistics = useLoaded((signal) => get<Summary>('/api/stats', signal), [], 3_000)
  useEffect(() => {
    if (reloads > 0) reload()
  }, [reloads])
  const counts = useMemo(
    () => new Map(statistics.data?.rules.map((it) => [`${it.ruleSetId}/${it.ruleId}`, it])),
    [statistics.data],
  )
  const words = search.toLowerCase().split(/\s+/).filter(Boolean)
  const shownSets = sets.filter(({ id }) => onlySet === '' || id === onlySet)
  const shownRules = (set: RuleSetDocument): RuleDocument[] =>
    set.rules
      .filter((rule) => {
        const text = [rule.id, rule.name, rule.description, rule.path, rule.method, set.id]
          .flat()
          .join(' ')
          .toLowerCase()
        return matches(filter, rule) && words.every((word) => text.includes(word))
      })
      .sort(comparing(order, (rule) => rejectionsOf(counts.get(`${set.id}/${rule.id}`))))
  return (
    <>
      <div class="page-head">
        <h1>{t('rules')}</h1>
        <span class="spacer" />
        <button type="button" class="button" onClick={() => setDialog({ name: 'import' })}>
          <Icon name="upload" /> {t('import')}
        </button>
        <button type="button" class="button" onClick={() => setDialog({ name: 'newSet' })}>
          <Icon name="plus" /> {t('newSet')}
        </button>
      </div>
      <div class="group filters">
        <div class="search">
          <Icon name="search" />
          <input
            type="search"
            class="search-input"
            aria-label={t('searchRules')}
            placeholder={t('searchRules')}
            value={search}
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
        </div>
        <Choice label={t('ruleSet')} value={onlySet} onChange={setOnlySet}>
          {[['', t('allSets')], ...sets.map(({ id }) => [id, id] as const)]}
        </Choice>
        <Choice label={t('status')} value={filter} onChange={(value) => setFilter(value as Filter)}>
          {filters.map((name) => [name, t(`filter_${name}`)])}
        </Choice>
        <Choice label={t('order')} value={order} onChange={(value) => setOrder(value as Order)}>
          {orders.map((name) => [name, t(`order_${name}`)])}
        </Choice>
      </div>
      {sets.length === 0 && <Empty title={t('noSets')}>{t('noSetsHelp')}</Empty>}
      {shownSets.map((set) => {
        const rules = shownRules(set)
        return (
          <section class="card rule-set" key={set.id} aria-labelledby={`set-${set.id}`}>
            <div class="page-head">
              <h2 id={`set-${set.id}`}>{set.id}</h2>
              {set.description && <span class="muted">{set.description}</span>}
              {set.strategy === 'first' && <span class="badge badge-accent">{t('strategyFirst')}</span>}
              <span class="spacer" />
              <button type="button" class="button small" onClick={() => setDialog({ name: 'history', set: set.id })}>
                <Icon name="history" size={15} /> {t('history')}
              </button>
              <button type="button" class="button small" onClick={() => downloadSet(set)}>
                <Icon name="download" size={15} /> {t('export')}
              </button>
              <a class="button small primary" href={`${linkTo(['rules', set.id])}?new`}>
                <Icon name="plus" size={15} /> {t('newRule')}
              </a>
            </div>
            {rules.length === 0 && (
              <Empty title={t(set.rules.length === 0 ? 'noRules' : 'noMatchingRules')}>
                {t(set.rules.length === 0 ? 'noRulesHelp' : 'noMatchingRulesHelp')}
              </Empty>
            )}
            <ul class="rule-rows">
              {rules.slice(0, shownRows).map((rule) => (
                <RuleRow
                  key={rule.id}
                  ruleSetId={set.id}
                  rule={rule}
                  counts={counts.get(`${set.id}/${rule.id}`)}
                  onChanged={reload}
                />
              ))}
            </ul>
            {rules.length > shownRows && (
              <button type="button" class="button" onClick={() => setShownRows(shownRows + rowsPerStep)}>
                {t('showMore', { count: whole(Math.min(rowsPerStep, rules.length - shownRows)) })}
              </button>
            )}
          </section>
        )
      })}
      {dialog?.name === 'import' && <ImportDialog sets={sets} onClose={() => setDialog(undefined)} onDone={reload} />}
      {dialog?.name === 'newSet' && <NewSetDialog onClose={() => setDialog(undefined)} onDone={reload} />}
      {dialog?.name === 'history' && (
        <HistoryDialog ruleSetId={dialog.set} onClose={() => setDialog(undefined)} onRestored={reload} />
      )}
    </>
  )
}

const rejectionsOf = (counts: Counts | undefined): number => (counts?.denied ?? 0) + (counts?.shadowDenied ?? 0)

function comparing(order: Order, deniedOf: (rule: RuleDocument) => number) {
  const byId = (a: RuleDocument, b: RuleDocument): number => (a.id < b.id ? -1 : 1)
  if (order === 'name') return (a: RuleDocument, b: RuleDocument) => (a.name ?? a.id).localeCompare(b.name ?? b.id)
  if (order === 'rejections') return (a: RuleDocument, b: RuleDocument) => deniedOf(b) - deniedOf(a) || byId(a, b)
  if (order === 'changed')
    return (a: RuleDocument, b: RuleDocument) => (b.updatedAt ?? '').localeCompare(a.updatedAt ?? '') || byId(a, b)
  return (a: RuleDocument, b: RuleDocument) => (b.priority ?? 0) - (a.priority ?? 0) || byId(a, b)
}

interface ChoiceProps {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly children: readonly (readonly string[])[]
}

const Choice = ({ label, value, onChange, children }: ChoiceProps) => (
  <select
    class="choice"
    aria-label={label}
    title={label}
    value={value}
    onChange={(event) => onChange(event.currentTarget.value)}
  >
    {children.map(([name = '', text]) => (
      <option key={name} value={name}>
        {text}
      </option>
    ))}
  </select>
)
