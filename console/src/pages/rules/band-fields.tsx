import type { Issue } from '../../state/api.js'
import type { BandDocument } from '../../state/rules.js'
import { t } from '../../text/translate.js'
import { TextField } from '../../ui/field.js'
import { Icon } from '../../ui/icon.js'

interface BandFieldsProps {
  readonly bands: readonly BandDocument[]
  readonly issues: readonly Issue[]
  readonly onChange: (bands: readonly BandDocument[]) => void
}

/** The window as text, whatever member it is in. */
function windowText({ window, windowMs, windowSeconds, refillSeconds }: BandDocument): string {
  if (window !== undefined) return String(window)
  if (windowMs !== undefined) return `${windowMs}ms`
  const seconds = windowSeconds ?? refillSeconds
  return seconds === undefined ? '' : `${seconds}s`
}

/** Replaces the window, whatever member it is in, or the calendar. */
function withWindow(band: BandDocument, window: string): BandDocument {
  const { windowMs, windowSeconds, refillSeconds, calendar, timeZone, anchor, ...rest } = band
  return { ...rest, window }
}

export function BandFields({ bands, issues, onChange }: BandFieldsProps) {
  const replace = (index: number, band: BandDocument): void =>
    onChange(bands.map((old, i) => (i === index ? band : old)))
  const issueOf = (index: number, ...names: readonly string[]): string | undefined =>
    issues.find(({ path }) => names.some((name) => path === `bands[${index}].${name}`))?.message
  return (
    <fieldset class="bands">
      <legend>{t('limits')}</legend>
      {bands.map((band, i) => (
        <div class="band-row" key={i}>
          <TextField
            label={t('label')}
            issue={issueOf(i, 'label')}
            value={band.label ?? ''}
            placeholder={t('derived')}
            onValue={(value) => {
              const { label: _, ...rest } = band
              replace(i, value === '' ? rest : { ...band, label: value })
            }}
          />
          <TextField
            label={t('capacity')}
            issue={issueOf(i, 'capacity')}
            type="number"
            min={0}
            value={band.capacity ?? ''}
            onValue={(value) => {
              const { capacity: _, ...rest } = band
              replace(i, value === '' ? rest : { ...band, capacity: Number(value) })
            }}
          />
          <TextField
            label={t('window')}
            issue={issueOf(i, 'window', 'windowMs', 'windowSeconds', 'refillSeconds', 'calendar')}
            value={windowText(band)}
            placeholder={band.calendar ?? '1m'}
            onValue={(value) => replace(i, withWindow(band, value))}
          />
          <button
            type="button"
            class="button quiet square"
            disabled={bands.length === 1}
            aria-label={t('removeBand', { band: band.label ?? String(i + 1) })}
            onClick={() => onChange(bands.filter((_, index) => index !== i))}
          >
            <Icon name="trash" size={16} />
          </button>
        </div>
      ))}
      {bands.length < 8 && (
        <button
          type="button"
          class="button small"
          onClick={() => onChange([...bands, { label: `band-${bands.length + 1}`, capacity: 1000, window: '1h' }])}
        >
          <Icon name="plus" size={15} /> {t('addBand')}
        </button>
      )}
    </fieldset>
  )
}
