import { reloads } from '../../state/events.js'
import { route } from '../../state/route.js'
import { loadRuleSets } from '../../state/rules.js'
import { LoadState, useLoaded } from '../../ui/states.js'
import { RuleEditor } from './editor.js'
import { RuleList } from './rule-list.js'

/** `#/rules`, `#/rules/<set>/<rule>`, `#/rules/<set>?new`, `#/rules/<set>?copy=<rule>`. */
export function Rules() {
  const loaded = useLoaded(loadRuleSets, [])
  const { data: sets, reload } = loaded
  const seen = reloads.value
  const { segments, query } = route.value
  const [, setId, ruleId] = segments
  if (sets === undefined) return <LoadState of={loaded} />
  const isNew = query.has('new') || query.has('copy')
  if (setId !== undefined && (ruleId !== undefined || isNew)) {
    const set = sets.find(({ id }) => id === setId)
    const source = ruleId ?? query.get('copy')
    const rule = set?.rules.find(({ id }) => id === source)
    return (
      <RuleEditor
        key={`${setId}/${ruleId}/${query}`}
        ruleSetId={setId}
        rule={rule}
        wantedId={ruleId}
        isNew={isNew}
        onSaved={reload}
      />
    )
  }
  return <RuleList sets={sets} initialSet={setId} reload={reload} reloads={seen} />
}
