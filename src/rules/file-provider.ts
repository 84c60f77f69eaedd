import { resolve } from 'node:path'
import type { RuleSetProvider } from '../core/rule-set-provider.js'
import { inSlices } from '../core/scheduling/steps.js'
import { documentSteps, formatOf } from './document/document.js'
import { digestOfFile, readRulesFile } from './document/rules-file.js'
import { watchFile } from './document/watch-file.js'
import { ruleSetSteps } from './schema/schema.js'

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
      const digest = () => digestOfFile(file, path)
      return watchFile({ file, shown: path, digest, known: loaded, onChange, onError })
    },
  }
}
