import { resolve } from 'node:path'
import type { RuleSetProvider } from '../core/contracts/rule-set-provider.js'
import { inSlices } from '../core/scheduling/steps.js'
import { formatOf, parseDocumentSteps } from './document/document.js'
import { issueLocator } from './document/locate-issues.js'
import { digestOfFile, readRulesFile } from './document/rules-file.js'
import { watchFile } from './document/watch-file.js'
import { ruleSetSteps } from './schema/parse-rules.js'

/**
 * Creates a rule provider for one YAML or JSON file, which it watches for changes.
 *
 * @param path Relative to the current working directory. A file whose name ends in `.json` is parsed as JSON, others as YAML.
 */
export function fileRules(path: string): RuleSetProvider {
  // Resolved now, so that later changes of the working directory have no effect.
  const file = resolve(path)
  let loaded: string | undefined
  return {
    source: path,
    async load() {
      const { text, digest } = await readRulesFile(file, path)
      loaded = digest
      const format = formatOf(file)
      const { value } = await inSlices(parseDocumentSteps(text, format, { source: path }))
      return inSlices(ruleSetSteps(value, path, issueLocator(text, format)))
    },
    watch(onChange, onError) {
      const digest = () => digestOfFile(file, path)
      return watchFile({ file, shown: path, digest, known: loaded, onChange, onError })
    },
  }
}
