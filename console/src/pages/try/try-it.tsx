import { useState } from 'preact/hooks'
import type { Explanation } from '../../../../src/core/explain/explanation.js'
import { request } from '../../state/api.js'
import { linkTo } from '../../state/route.js'
import { loadRuleSets } from '../../state/rules.js'
import { duration, whole } from '../../text/format.js'
import { reasonText } from '../../text/sentences.js'
import { t } from '../../text/translate.js'
import { Field, TextField } from '../../ui/field.js'
import { Icon } from '../../ui/icon.js'
import { Level } from '../../ui/level.js'
import { Failure, messageOf, useLoaded } from '../../ui/states.js'

const empty = {
  method: 'GET',
  path: '/',
  clientIp: '203.0.113.7',
  userId: '',
  apiKey: '',
  headers: '',
  attributes: '',
  costs: '',
  permits: '1',
}
type Fields = typeof empty

/** Lines `name: value`. */
const linesOf = (text: string): Record<string, string> =>
  Object.fromEntries(
    text
      .split('\n')
      .map((line) => line.split(/:(.*)/s))
      .filter(([name = '']) => name.trim() !== '')
      .map(([name = '', value = '']) => [name.trim(), value.trim()]),
  )

function bodyOf(ruleSetId: string, fields: Fields): object {
  const { method, path, clientIp, userId, apiKey, headers, attributes, costs, permits } = fields
  return {
    ...(ruleSetId && { ruleSetId }),
    method,
    path,
    ...(clientIp && { clientIp }),
    ...(userId && { userId }),
    ...(apiKey && { apiKey }),
    ...(headers.trim() && { headers: linesOf(headers) }),
    ...(attributes.trim() && { attributes: JSON.parse(attributes) as unknown }),
    permits: Number(permits),
    ...(costs.trim() && {
      costs: Object.fromEntries(Object.entries(linesOf(costs)).map(([name, value]) => [name, Number(value)])),
    }),
  }
}

/** Explains the decision about a request that the user describes. Nothing is charged. */
export function TryIt() {
  const sets = useLoaded(loadRuleSets, [])
  const [setId, setSetId] = useState('')
  const [fields, setFields] = useState<Fields>(empty)
  const [result, setResult] = useState<Explanation>()
  const [problem, setProblem] = useState('')
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    setProblem('')
    try {
      const body = bodyOf(setId || (sets.data?.length === 1 ? (sets.data[0]?.id ?? '') : ''), fields)
      setResult((await request<Explanation>('POST', '/api/ratelimit/explain', { body })).body)
    } catch (error) {
      setProblem(error instanceof SyntaxError ? t('attributesInvalid') : messageOf(error))
    }
  }
  const input = (name: keyof Fields, label: string, props: object = {}) => (
    <TextField
      label={label}
      value={fields[name]}
      onValue={(value) => setFields({ ...fields, [name]: value })}
      {...props}
    />
  )
  const area = (name: 'headers' | 'attributes' | 'costs', label: string, placeholder: string) => (
    <Field label={label}>
      <textarea
        class="mono"
        rows={2}
        value={fields[name]}
        placeholder={placeholder}
        onInput={(event) => setFields({ ...fields, [name]: event.currentTarget.value })}
      />
    </Field>
  )
  if (sets.error !== undefined && sets.data === undefined) return <Failure error={sets.error} retry={sets.reload} />
  return (
    <>
      <div class="page-head">
        <h1>{t('try')}</h1>
        <span class="muted">{t('tryHelp')}</span>
      </div>
      <div class="columns try">
        <form class="card" onSubmit={submit}>
          <Field label={t('ruleSet')}>
            <select value={setId} onChange={(event) => setSetId(event.currentTarget.value)}>
              <option value="">{t('defaultSet')}</option>
              {sets.data?.map(({ id }) => (
                <option key={id} value={id}>
                  {id}
                </option>
              ))}
            </select>
          </Field>
          <div class="field-row">
            {input('method', t('method'), { list: 'methods', required: true })}
            {input('path', t('path'), { required: true })}
          </div>
          <datalist id="methods">
            {['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
          <div class="field-row">
            {input('clientIp', t('clientIp'))}
            {input('userId', t('userId'))}
          </div>
          <div class="field-row">
            {input('apiKey', t('apiKey'), { autocomplete: 'off' })}
            {input('permits', t('permitsAsked'), { type: 'number', min: 1, required: true })}
          </div>
          {area('headers', t('headers'), 'x-app: ios')}
          {area('attributes', t('attributes'), '{ "tier": "premium" }')}
          {area('costs', t('costs'), 'tokens: 1200')}
          {problem && (
            <p class="bad" role="alert">
              {problem}
            </p>
          )}
          <button type="submit" class="button primary">
            {t('explain')}
          </button>
        </form>
        <section class="card" aria-label={t('result')} aria-live="polite">
          {result === undefined ? <TryEmpty /> : <Result explanation={result} />}
        </section>
      </div>
    </>
  )
}

const TryEmpty = () => (
  <div class="state">
    <Icon name="try" size={26} />
    <p>{t('tryEmpty')}</p>
  </div>
)

function Result({ explanation: { decision, rules, ruleSetId, omitted } }: { readonly explanation: Explanation }) {
  const { allowed, reason, delayMs, retryAfterMs } = decision
  return (
    <>
      <div class={allowed ? 'verdict is-allowed' : 'verdict is-rejected'}>
        <strong>{t(allowed ? (delayMs > 0 ? 'wouldDelay' : 'wouldAllow') : 'wouldReject')}</strong>
        <span>
          {reasonText(reason)}
          {delayMs > 0 && ` · ${duration(delayMs)}`}
          {!allowed &&
            (retryAfterMs === null
              ? ` · ${t('neverAllowed')}`
              : ` · ${t('retryIn', { time: duration(retryAfterMs) })}`)}
        </span>
      </div>
      <ul class="explained">
        {rules.map(({ ruleId, name, status, failed, buckets, mode }) => (
          <li key={ruleId}>
            <div class="group">
              <a class="rule-name" href={linkTo(['rules', ruleSetId ?? '', ruleId])}>
                {name ?? ruleId}
              </a>
              <span class={status === 'MATCHED' ? 'badge badge-ok' : 'badge'}>{statusText(status)}</span>
              {mode === 'SHADOW' && <span class="badge badge-shadow">{t('shadow')}</span>}
            </div>
            {failed !== null && (
              <p class="muted small">
                {t('failedCondition', {
                  field: failed.field,
                  expected: failed.expected.join(', ') || t('anyValue'),
                  received: failed.received === null ? t('nothing') : [failed.received].flat().join(', '),
                })}
              </p>
            )}
            {buckets.map(({ key, override, bands }) => (
              <div class="bucket" key={key}>
                <span>
                  <span class="muted small">{t('key')}</span> <code>{key}</code>{' '}
                  {override !== null && <span class="badge badge-accent">{t('overrideIs', { action: override })}</span>}
                </span>
                {bands.map((band) => (
                  <Level key={band.label} {...band} />
                ))}
              </div>
            ))}
          </li>
        ))}
      </ul>
      {omitted > 0 && <p class="muted">{t('omittedRules', { count: whole(omitted) })}</p>}
    </>
  )
}

const statuses = {
  MATCHED: 'statusMatched',
  NOT_MATCHED: 'statusNotMatched',
  DISABLED: 'filter_disabled',
  NO_KEY: 'statusNoKey',
  MISSING_KEY: 'reasonMissingKey',
  PRECEDED: 'statusPreceded',
} as const

const statusText = (status: string): string =>
  Object.hasOwn(statuses, status) ? t(statuses[status as keyof typeof statuses]) : status
