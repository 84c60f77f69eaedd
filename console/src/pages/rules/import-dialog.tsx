import { useState } from 'preact/hooks'
import { request } from '../../state/api.js'
import { plainSet, type RuleDocument, type RuleSetDocument, ruleSetPath } from '../../state/rules.js'
import { t } from '../../text/translate.js'
import { Dialog } from '../../ui/dialog.js'
import { Diff } from '../../ui/diff.js'
import { Icon } from '../../ui/icon.js'
import { messageOf } from '../../ui/states.js'
import { notify } from '../../ui/toast.js'
import { fromYaml, toYaml } from './yaml-text.js'

interface ImportProps {
  readonly sets: readonly RuleSetDocument[]
  readonly onClose: () => void
  readonly onDone: () => void
}

interface ImportedSet {
  readonly id: string
  readonly rules: readonly RuleDocument[]
}

/** The rule sets of a document: `{ ruleSets: [...] }`, a list, or one set. Throws if it is something else. */
function setsOf(value: unknown): readonly ImportedSet[] {
  const { ruleSets } = (value ?? {}) as { ruleSets?: unknown }
  const list = [ruleSets ?? value ?? []].flat() as readonly Partial<ImportedSet>[]
  if (list.length === 0 || !list.every((set) => typeof set?.id === 'string' && Array.isArray(set.rules)))
    throw new Error(t('importNotSets'))
  return list as readonly ImportedSet[]
}

export function ImportDialog({ sets, onClose, onDone }: ImportProps) {
  const [text, setText] = useState('')
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState('')
  let found: readonly ImportedSet[] = []
  let parseProblem = ''
  if (text.trim() !== '') {
    const parsed = fromYaml(text)
    try {
      if (parsed.problem === '') found = setsOf(parsed.value)
      else parseProblem = parsed.problem
    } catch (error) {
      parseProblem = messageOf(error)
    }
  }
  const save = async (): Promise<void> => {
    setBusy(true)
    setProblem('')
    try {
      for (const set of found) {
        const known = sets.find(({ id }) => id === set.id)
        const headers = known === undefined ? { 'If-None-Match': '*' } : { 'If-Match': `"${known.version}"` }
        await request('PUT', ruleSetPath(set.id), { body: plainSet(set), headers })
      }
      notify(t('imported', { count: found.length }))
      onDone()
      onClose()
    } catch (error) {
      setProblem(messageOf(error))
      setBusy(false)
      onDone()
    }
  }
  return (
    <Dialog title={t('importTitle')} onClose={onClose} isWide>
      <p class="muted">{t('importHelp')}</p>
      <label class="button file-button">
        <Icon name="upload" /> {t('chooseFile')}
        <input
          type="file"
          class="visually-hidden"
          accept=".yaml,.yml,.json"
          onChange={async ({ currentTarget: { files } }) => setText((await files?.[0]?.text()) ?? '')}
        />
      </label>
      <label class="field">
        <span>YAML / JSON</span>
        <textarea
          class="mono yaml"
          rows={8}
          spellcheck={false}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      {(parseProblem || problem) && (
        <p class="bad" role="alert">
          {parseProblem || problem}
        </p>
      )}
      {found.map((set) => {
        const known = sets.find(({ id }) => id === set.id)
        return (
          <section key={set.id}>
            <h3>
              {set.id} {known === undefined && <span class="badge badge-ok">{t('isNew')}</span>}
            </h3>
            <Diff before={known === undefined ? '' : toYaml(plainSet(known))} after={toYaml(plainSet(set))} />
          </section>
        )
      })}
      <div class="dialog-foot">
        <button type="button" class="button" onClick={onClose}>
          {t('cancel')}
        </button>
        <button type="button" class="button primary" disabled={found.length === 0 || isBusy} onClick={save}>
          {t('import')}
        </button>
      </div>
    </Dialog>
  )
}
