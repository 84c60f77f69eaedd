import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { RuleStore } from '../../src/core/rule-store.js'
import { fileRuleStore } from '../../src/rules/file/file-rule-store.js'

/** An empty rules file that ends with the test. */
export function temporaryRules(name = 'rules.yaml', text = 'ruleSets: []\n'): RuleStore {
  const directory = mkdtempSync(join(tmpdir(), 'fluxgate-rules-'))
  const path = join(directory, name)
  writeFileSync(path, text)
  const store = fileRuleStore(path)
  onTestFinished(async () => {
    await store.close()
    rmSync(directory, { recursive: true, force: true })
  })
  return store
}
