import { useEffect, useState } from 'preact/hooks'
import { get } from '../../state/api.js'
import type { PlacedRule } from '../../state/bans.js'
import { loadBucket } from '../../state/buckets.js'
import { navigate, route } from '../../state/route.js'
import { loadRuleSets, type RuleSetDocument } from '../../state/rules.js'
import type { KeyCount } from '../../state/statistics.js'
import { ago, short } from '../../text/format.js'
import { t } from '../../text/translate.js'
import { Icon } from '../../ui/icon.js'
import { Empty, Loading, LoadState, useLoaded } from '../../ui/states.js'
import { Table } from '../../ui/table.js'
import { BannedKeys } from './banned-keys.js'
import { BucketCard } from './bucket-card.js'

const keysWith = (prefix: string, signal?: AbortSignal) =>
  get<{ keys: readonly KeyCount[] }>(`/api/keys?limit=50&prefix=${encodeURIComponent(prefix)}`, signal)

/** Finds keys by prefix. `#/keys?key=…` shows all buckets of one key. */
export function Keys() {
  const { query } = route.value
  const chosen = query.get('key') ?? ''
  const [text, setText] = useState(chosen)
  useEffect(() => setText(chosen), [chosen])
  const sets = useLoaded(loadRuleSets, [])
  const list = useLoaded((signal) => keysWith(text, signal), [text], 3_000)
  const keys = list.data?.keys ?? []
  return (
    <>
      <div class="page-head">
        <h1>{t('keys')}</h1>
        <span class="muted">{t('keysHelp')}</span>
      </div>
      <form
        class="group"
        onSubmit={(event) => {
          event.preventDefault()
          if (text !== '') navigate(['keys'], { key: text })
        }}
      >
        <div class="search">
          <Icon name="search" />
          <input
            type="search"
            class="search-input"
            list="known-keys"
            aria-label={t('searchKeys')}
            placeholder={t('searchKeys')}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          <datalist id="known-keys">
            {[...new Set(keys.map(({ key }) => key))].map((key) => (
              <option key={key} value={key} />
            ))}
          </datalist>
        </div>
        <button type="submit" class="button primary" disabled={text === ''}>
          {t('showBuckets')}
        </button>
      </form>
      {chosen !== '' && chosen === text ? (
        <KeyBuckets
          name={chosen}
          sets={sets.data ?? []}
          seen={keys}
          hint={query.get('rule')}
          hintSet={query.get('set')}
        />
      ) : (
        <>
          <BannedKeys sets={sets.data ?? []} />
          <section class="card" aria-labelledby="known">
            <h2 id="known">{t('knownKeys')}</h2>
            {list.data === undefined && <LoadState of={list} />}
            {list.data !== undefined && keys.length === 0 && <Empty title={t('noKeys')}>{t('noKeysHelp')}</Empty>}
            {keys.length > 0 && <KeyTable keys={keys} />}
          </section>
        </>
      )}
    </>
  )
}

const KeyTable = ({ keys }: { readonly keys: readonly KeyCount[] }) => (
  <Table
    head={[
      [t('key')],
      [t('rule'), 'wide-only'],
      [t('requestsRead'), 'number'],
      [t('rejected'), 'number'],
      [t('lastSeen'), 'number wide-only'],
    ]}
  >
    {keys.map(({ key, ruleSetId, ruleId, requests, denied, lastAt }) => (
      <tr key={`${ruleSetId}/${ruleId}/${key}`}>
        <td>
          <button type="button" class="link" onClick={() => navigate(['keys'], { key })}>
            <code>{key}</code>
          </button>
          <span class="muted small narrow-only">
            {ruleSetId} / {ruleId}
          </span>
        </td>
        <td class="muted wide-only">
          {ruleSetId} / {ruleId}
        </td>
        <td class="number">{short(requests)}</td>
        <td class={denied > 0 ? 'number bad' : 'number'}>{short(denied)}</td>
        <td class="number muted wide-only">{ago(lastAt, Date.now())}</td>
      </tr>
    ))}
  </Table>
)

interface KeyBucketsProps {
  readonly name: string
  readonly sets: readonly RuleSetDocument[]
  readonly seen: readonly KeyCount[]
  readonly hint: string | null
  readonly hintSet: string | null
}

/** The most rules whose bucket is read to find out whether it is used. */
const maxRead = 200

/** The ids of the rules under which the key has a bucket that is not full. */
async function usedBuckets(name: string, rules: readonly PlacedRule[], signal: AbortSignal): Promise<Set<string>> {
  const used = await Promise.all(
    rules.slice(0, maxRead).map(async (placed) => {
      const bands = await loadBucket(placed, name, signal).catch(() => [])
      return bands.some(({ remaining, limit }) => remaining < limit) ? idOf(placed) : undefined
    }),
  )
  return new Set(used.filter((id) => id !== undefined))
}

const idOf = ({ ruleSetId, rule }: PlacedRule): string => `${ruleSetId}/${rule.id}`

/**
 * The buckets of a key that are used, and those that the user adds. Statistics name only the rule that decided a request, so the
 * others are found by reading their buckets.
 */
function KeyBuckets({ name, sets, seen, hint, hintSet }: KeyBucketsProps) {
  const [added, setAdded] = useState<readonly string[]>([])
  const isDigest = /^sha256:[0-9a-f]{16}$/.test(name)
  const all = sets.flatMap(({ id: ruleSetId, rules }) =>
    rules.filter(({ enabled = true }) => enabled).map((rule) => ({ ruleSetId, rule })),
  )
  const used = useLoaded(
    async (signal) => (isDigest ? new Set<string>() : usedBuckets(name, all, signal)),
    [name, all.map(idOf).join()],
  )
  const seenIds = new Set(
    seen.filter(({ key }) => key === name).map(({ ruleSetId, ruleId }) => `${ruleSetId}/${ruleId}`),
  )
  if (hint !== null) seenIds.add(`${hintSet}/${hint}`)
  const isShown = (id: string): boolean => seenIds.has(id) || used.data?.has(id) === true || added.includes(id)
  const shown = all.filter((rule) => isShown(idOf(rule)))
  const others = all.map(idOf).filter((id) => !isShown(id))
  if (isDigest) return <Empty title={t('isDigest')}>{t('isDigestHelp')}</Empty>
  return (
    <>
      {shown.length === 0 &&
        (used.data === undefined ? <Loading /> : <Empty title={t('keyNotSeen')}>{t('keyNotSeenHelp')}</Empty>)}
      {shown.map((placed) => (
        <BucketCard key={idOf(placed)} {...placed} name={name} />
      ))}
      {others.length > 0 && (
        <label class="field add-rule">
          <span>{t('addRule')}</span>
          <select value="" onChange={({ currentTarget: { value } }) => value !== '' && setAdded([...added, value])}>
            <option value="">{t('chooseRule')}</option>
            {others.map((id) => (
              <option key={id} value={id}>
                {id}
              </option>
            ))}
          </select>
        </label>
      )}
    </>
  )
}
