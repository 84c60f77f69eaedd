/** A rule as a sentence: "Each IP address may send 100 requests per second and 1000 per minute to GET /api/users/*." */
import type { BandDocument, RuleDocument } from '../state/rules.js'
import { whole } from './format.js'
import { t } from './translate.js'

const subjects: Readonly<Record<string, Parameters<typeof t>[0]>> = {
  GLOBAL: 'subjectGlobal',
  IP: 'subjectIp',
  PER_IP: 'subjectIp',
  USER_ID: 'subjectUser',
  PER_USER: 'subjectUser',
  API_KEY: 'subjectApiKey',
  PER_API_KEY: 'subjectApiKey',
}

export function ruleSentence(rule: RuleDocument): string {
  const bands = (rule.bands ?? []).map((band) => bandText(rule, band)).filter((text) => text !== '')
  if (bands.length === 0) return t('sentenceIncomplete')
  const target = targetOf(rule)
  const when = Object.entries(rule.when ?? {}).map(([field, value]) => `${field} = ${[value].flat().join(', ')}`)
  const sentence = t('sentence', {
    subject: subjectOf(rule),
    limits: bands.join(t('sentenceAnd')),
    target,
    when: when.length === 0 ? '' : t('sentenceWhen', { conditions: when.join(t('sentenceAnd')) }),
  })
  return [sentence, ...remarksOf(rule)].join(' ')
}

function subjectOf({ limitScope = 'IP', compositeKeyFields = [], keyField, keyResolver }: RuleDocument): string {
  const known = subjects[limitScope.toUpperCase()]
  if (known !== undefined) return t(known)
  const fields = limitScope.toUpperCase() === 'COMPOSITE' ? compositeKeyFields : [keyField ?? keyResolver ?? '?']
  return t('subjectFields', { fields: fields.join(' + ') })
}

function targetOf({ path = '/**', method }: RuleDocument): string {
  const methods = [method ?? []].flat().filter((name) => name !== '*')
  const isAny = path === '/**' || path === '**'
  if (isAny && methods.length === 0) return ''
  return t('sentenceTo', { target: [methods.join('/'), isAny ? t('anyPath') : path].filter(Boolean).join(' ') })
}

function bandText(rule: RuleDocument, band: BandDocument): string {
  const { capacity } = band
  if (typeof capacity !== 'number') return ''
  const { refillTokens } = band
  const isBurst = typeof refillTokens === 'number' && refillTokens !== capacity
  const unit =
    rule.cost === undefined || rule.cost === 'requests'
      ? t('requests', { count: isBurst ? refillTokens : capacity })
      : rule.cost
  const algorithm = (band.algorithm ?? rule.algorithm ?? 'TOKEN_BUCKET').toUpperCase().replaceAll('-', '_')
  if (algorithm === 'CONCURRENCY') return t('bandConcurrent', { count: whole(capacity), unit })
  const window = windowOf(band)
  if (capacity === 0) return t('bandNone', { unit })
  if (isBurst) return t('bandBurst', { count: whole(refillTokens), unit, window, burst: whole(capacity) })
  return t('band', { count: whole(capacity), unit, window })
}

/** `1s` → `second`, `10s` → `10 s`, the calendar period, or the text as it is. */
function windowOf({ window, windowMs, windowSeconds, refillSeconds, calendar }: BandDocument): string {
  if (typeof calendar === 'string') {
    const period = calendarNames[calendar.toUpperCase()]
    return t('calendarPeriod', { period: period === undefined ? calendar : t(period) })
  }
  const text =
    window ??
    (windowMs !== undefined ? `${windowMs}ms` : undefined) ??
    (windowSeconds !== undefined ? `${windowSeconds}s` : undefined) ??
    (refillSeconds !== undefined ? `${refillSeconds}s` : '?')
  return windowText(String(text), false)
}

/** With `isCounted`, a single unit has its number too: `1 minute` instead of `minute`. */
function windowText(text: string, isCounted: boolean): string {
  const [, count = '', unit = ''] = /^\s*([\d.]+)\s*([a-z]+)\s*$/i.exec(text) ?? []
  const name = unitNames[unit.toLowerCase()]
  if (name === undefined) return text
  if (Number(count) !== 1) return t('windowCount', { count, unit: t(name) })
  return isCounted ? t('windowOne', { unit: t(name) }) : t(name)
}

/** `15m` → `15 minutes`. A number is in seconds. */
export const spanText = (span: string | number | undefined): string =>
  windowText(typeof span === 'number' ? `${span}s` : (span ?? '?'), true)

const calendarNames: Readonly<Record<string, 'day' | 'week' | 'month' | 'year'>> = {
  DAY: 'day',
  WEEK: 'week',
  MONTH: 'month',
  YEAR: 'year',
}

const unitNames: Readonly<Record<string, 'millisecond' | 'second' | 'minute' | 'hour' | 'day' | 'week'>> =
  Object.fromEntries(
    (
      [
        ['millisecond', 'ms milliseconds'],
        ['second', 's sec secs seconds'],
        ['minute', 'm min mins minutes'],
        ['hour', 'h hours'],
        ['day', 'd days'],
        ['week', 'w weeks'],
      ] as const
    ).flatMap(([name, spellings]) => [name, ...spellings.split(' ')].map((spelling) => [spelling, name])),
  )

function remarksOf({
  enabled = true,
  mode,
  enforcePercent = 100,
  onLimitExceed,
  permits = 1,
  ban,
}: RuleDocument): string[] {
  const remarks: string[] = []
  if (permits > 1) remarks.push(t('remarkPermits', { count: permits }))
  if (onLimitExceed === 'WAIT_FOR_REFILL') remarks.push(t('remarkWait'))
  if (typeof ban?.after === 'number')
    remarks.push(t('remarkBan', { count: whole(ban.after), within: spanText(ban.within), time: spanText(ban.for) }))
  if (!enabled) remarks.push(t('remarkDisabled'))
  else if (mode === 'SHADOW') remarks.push(t('remarkShadow'))
  else if (enforcePercent < 100) remarks.push(t('remarkPercent', { percent: enforcePercent }))
  return remarks
}
