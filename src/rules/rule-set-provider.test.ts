import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'vitest'
import type { RuleSetProvider } from '../core/contracts/rule-set-provider.js'
import { type ProviderFixture, ruleSetProviderContract } from '../testing/rule-stores/provider-contract.js'
import { fileRuleStore } from './file/file-rule-store.js'
import { fileRules } from './file-provider.js'
import { objectRules } from './object-provider.js'

const inFile = async (open: (path: string) => RuleSetProvider): Promise<ProviderFixture> => {
  const directory = await mkdtemp(join(tmpdir(), 'fluxgate-'))
  const path = join(directory, 'rules.json')
  return {
    provider: open(path),
    put: (document) => writeFile(path, JSON.stringify(document)),
    remove: () => rm(directory, { recursive: true, force: true }),
  }
}

describe('rules from a file', () => ruleSetProviderContract(it, () => inFile(fileRules)))

describe('rules from a file rule store', () => ruleSetProviderContract(it, () => inFile(fileRuleStore)))

describe('rules from an object', () =>
  ruleSetProviderContract(it, () => {
    const kept: Record<string, unknown> = {}
    return { provider: objectRules(kept), put: (document) => void Object.assign(kept, document) }
  }))
