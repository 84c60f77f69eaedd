import { resolve } from 'node:path'
import type { RuleSetProvider } from '../core/rule-set-provider.js'
import { inSlices } from '../core/steps.js'
import { documentSteps, formatOf } from './document.js'
import { readRulesFile } from './rules-file.js'
import { ruleSetSteps } from './schema.js'
import { watchFile } from './watch-file.js'

/** Rules from one YAML or JSON file (by its ending), watched for changes. */
export function fileRules(path: string): RuleSetProvider {
  // Later changes of the working directory must not change which file it is.
  const file = resolve(path)
  let loaded: string | undefined
  return {
    source: path,
    async load() {
      const { text, digest } = await readRulesFile(file, path)
      loaded = digest
      const { value } = await inSlices(documentSteps(text, formatOf(file), { source: path }))
      return inSlices(ruleSetSteps(value, path))
    },
    watch(onChange, onError) {
      const digest = async () => (await readRulesFile(file, path)).digest
      return watchFile({ file, shown: path, digest, known: loaded, onChange, onError })
    },
  }
}
