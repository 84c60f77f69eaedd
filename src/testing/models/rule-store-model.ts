import type { Edit, RuleDocument, RuleSetDocument } from '../../core/contracts/rule-store.js'
import { FluxGateError } from '../../core/errors.js'

interface ModelSet {
  version: number
  /** The highest version that a removal has used. */
  removedVersion: number
  head: { readonly id: string; readonly description?: string } | undefined
  readonly rules: Map<string, RuleDocument>
}

/** The reference model of a rule store: in memory, without concurrency. */
export class RuleStoreModel {
  readonly #sets = new Map<string, ModelSet>()

  read(setId: string): RuleSetDocument | undefined {
    const { head, version, rules } = this.#set(setId)
    return head && { ...head, version, rules: [...rules.values()].sort(byRank) }
  }

  readAll(): RuleSetDocument[] {
    return [...this.#sets.keys()].sort().flatMap((id) => this.read(id) ?? [])
  }

  putSet(document: { id: string; description?: string; rules: readonly RuleDocument[] }, edit: Edit, at: string) {
    const set = this.#set(document.id)
    const { rules, ...head } = document
    const created = set.head === undefined
    expectVersion(created ? 0 : set.version, edit)
    const base = set.removedVersion
    const changed = rules.filter((rule) => write(set, rule, base, at)).length
    const gone = [...set.rules.keys()].filter((id) => !rules.some((rule) => rule.id === id))
    for (const id of gone) remove(set, id)
    if (set.head?.description !== head.description || created || changed + gone.length > 0) set.version += 1
    set.head = head
    return { document: this.read(document.id), created }
  }

  deleteSet(setId: string, edit: Edit): boolean {
    const set = this.#set(setId)
    expectVersion(set.head === undefined ? 0 : set.version, edit)
    if (set.head === undefined) return false
    for (const id of [...set.rules.keys()]) remove(set, id)
    set.head = undefined
    set.version += 1
    return true
  }

  putRule(setId: string, rule: RuleDocument, edit: Edit, at: string) {
    const set = this.#existing(setId)
    const before = set.rules.get(rule.id)
    expectVersion(Number(before?.version ?? 0), edit)
    if (write(set, rule, set.removedVersion, at)) set.version += 1
    return { document: set.rules.get(rule.id), created: before === undefined }
  }

  deleteRule(setId: string, ruleId: string, edit: Edit): boolean {
    const set = this.#existing(setId)
    expectVersion(Number(set.rules.get(ruleId)?.version ?? 0), edit)
    if (!set.rules.has(ruleId)) return false
    remove(set, ruleId)
    set.version += 1
    return true
  }

  #set(setId: string): ModelSet {
    const set = this.#sets.get(setId) ?? { version: 0, removedVersion: 0, head: undefined, rules: new Map() }
    this.#sets.set(setId, set)
    return set
  }

  #existing(setId: string): ModelSet {
    const set = this.#set(setId)
    if (set.head === undefined) throw new FluxGateError('FLUXGATE_RULE_SET_UNKNOWN', setId)
    return set
  }
}

/** Returns false if the rule is unchanged. */
function write(set: ModelSet, rule: RuleDocument, base: number, at: string): boolean {
  const before = set.rules.get(rule.id)
  const stamps = { createdAt: before?.createdAt ?? at, updatedAt: at, version: Number(before?.version ?? base) + 1 }
  const { createdAt, updatedAt, version }: Partial<RuleDocument> = before ?? {}
  if (before !== undefined && JSON.stringify({ ...rule, createdAt, updatedAt, version }) === JSON.stringify(before))
    return false
  set.rules.set(rule.id, { ...rule, ...stamps })
  return true
}

function remove(set: ModelSet, ruleId: string): void {
  set.removedVersion = Math.max(set.removedVersion, Number(set.rules.get(ruleId)?.version) + 1)
  set.rules.delete(ruleId)
}

function expectVersion(version: number, { ifVersion }: Edit): void {
  if (ifVersion !== undefined && ifVersion !== version)
    throw new FluxGateError('FLUXGATE_RULES_CONFLICT', `${ifVersion} instead of ${version}`)
}

function byRank(a: RuleDocument, b: RuleDocument): number {
  return Number(b.priority ?? 0) - Number(a.priority ?? 0) || (a.id < b.id ? -1 : 1)
}
