import { isObject } from '../validation/fields.js'
import { placeOf, type ValidationIssues } from '../validation/issues.js'
import { camelCase } from '../validation/setting-names.js'
import { problem, unknownName } from './messages.js'
import { settingGroups } from './settings.js'

/** A value of the file, with its path in the spelling of the file. */
export interface Member {
  readonly value: unknown
  readonly place: string
}

/** Members of an object, by their camelCase name. */
export type Part = ReadonlyMap<string, Member>

/**
 * Opens a section and merges the members of its groups: `store: { redis: { uri } }` yields `uri`. If a group is present and
 * `type` is missing, the name of the group becomes the type.
 */
export function openSection(
  section: Member | undefined,
  sectionName: string,
  names: readonly string[],
  issues: ValidationIssues,
): Part {
  const groups = settingGroups[sectionName] ?? {}
  const place = section?.place ?? sectionName
  const part = new Map(openPart(section?.value, place, [...names, ...Object.keys(groups)], issues))
  for (const [name, members] of Object.entries(groups)) {
    const group = part.get(name)
    if (group === undefined) continue
    for (const [inner, member] of openPart(group.value, group.place, Object.keys(members), issues)) {
      const key = members[inner] as string
      const other = part.get(key)
      if (other !== undefined) issues.add(member.place, sameAs(other.place))
      part.set(key, member)
    }
    if (names.includes('type') && !part.has('type')) part.set('type', { value: name, place: group.place })
  }
  return part
}

/** Opens an object of the file and reports unknown and duplicate names. Null and undefined count as an empty object. */
export function openPart(value: unknown, path: string, names: readonly string[], issues: ValidationIssues): Part {
  const part = new Map<string, Member>()
  const spelling = new Map<string, string>()
  if (!isObject(value)) {
    const allowed = `an object with ${names.join(', ')}`
    if (value !== undefined && value !== null) issues.add(path || 'document', problem(value, allowed))
    return part
  }
  for (const [spelt, member] of Object.entries(value)) {
    const name = camelCase(spelt)
    const other = spelling.get(name)
    const place = placeOf(path, isName(spelt) ? spelt : '…')
    if (!names.includes(name)) issues.add(place, unknownName(name, names))
    else if (other === undefined) part.set(name, { value: member, place })
    else issues.add(place, sameAs(other))
    if (other === undefined) spelling.set(name, spelt)
  }
  return part
}

/** False for text that may be a secret: if a colon is missing, the parser takes a value for a name. */
const isName = (spelt: string): boolean =>
  /^[A-Za-z_][\w-]{0,39}$/.test(spelt) && spelt.replaceAll(/\D/g, '').length <= 1

export const sameAs = (other: string): string => `duplicates ${other}; keep only one of them`
