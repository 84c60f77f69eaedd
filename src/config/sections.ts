import { isObject } from '../validation/fields.js'
import { placeOf, type ValidationIssues } from '../validation/issues.js'
import { hiddenValue, wrongValue } from '../validation/kind.js'
import { nameHint } from '../validation/nearest.js'
import { camelCase } from '../validation/setting-names.js'
import { settingGroups } from './settings.js'

/** A value of the file, with its path in the spelling of the file. */
export interface Member {
  readonly value: unknown
  readonly path: string
}

/** Members of an object, by their camelCase name. */
export type Members = ReadonlyMap<string, Member>

/**
 * Opens a section and merges the members of its groups: `store: { redis: { uri } }` yields `uri`. If a group is present and
 * `type` is missing, the name of the group becomes the type.
 */
export function openSection(
  section: Member | undefined,
  sectionName: string,
  names: readonly string[],
  issues: ValidationIssues,
): Members {
  const groups = settingGroups[sectionName] ?? {}
  const path = section?.path ?? sectionName
  const members = new Map(openObject(section?.value, path, [...names, ...Object.keys(groups)], issues))
  for (const [groupName, settingNames] of Object.entries(groups)) {
    const group = members.get(groupName)
    if (group === undefined) continue
    for (const [name, member] of openObject(group.value, group.path, Object.keys(settingNames), issues)) {
      const settingName = settingNames[name] as string
      const other = members.get(settingName)
      if (other !== undefined) issues.add(member.path, duplicateOf(other.path))
      members.set(settingName, member)
    }
    if (names.includes('type') && !members.has('type')) members.set('type', { value: groupName, path: group.path })
  }
  return members
}

/** Opens an object of the file and reports unknown and duplicate names. Null and undefined count as an empty object. */
export function openObject(value: unknown, path: string, names: readonly string[], issues: ValidationIssues): Members {
  const members = new Map<string, Member>()
  const spellings = new Map<string, string>()
  if (!isObject(value)) {
    const allowed = `an object with ${names.join(', ')}`
    if (value !== undefined && value !== null)
      issues.add(path || 'document', isUri(value) ? hiddenValue(allowed) : wrongValue(value, allowed))
    return members
  }
  for (const [spelling, member] of Object.entries(value)) {
    const name = camelCase(spelling)
    const other = spellings.get(name)
    const memberPath = placeOf(path, isName(spelling) ? spelling : '…')
    if (!names.includes(name)) issues.add(memberPath, unknownSetting(name, names))
    else if (other === undefined) members.set(name, { value: member, path: memberPath })
    else issues.add(memberPath, duplicateOf(other))
    if (other === undefined) spellings.set(name, spelling)
  }
  return members
}

/** False for text that may be a secret: if a colon is missing, the parser takes a value for a name. */
const isName = (spelling: string): boolean =>
  /^[A-Za-z_][\w-]{0,39}$/.test(spelling) && spelling.replaceAll(/\D/g, '').length <= 1

/** A URI may contain a password, so messages do not show it. */
export const isUri = (value: unknown): boolean => typeof value === 'string' && value.includes('://')

/** Does not repeat the name, because it may be a secret. */
const unknownSetting = (name: string, names: readonly string[]): string => `unknown key; ${nameHint(name, names)}`

export const duplicateOf = (other: string): string => `duplicates ${other}; keep only one of them`
