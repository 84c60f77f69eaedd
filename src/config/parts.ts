import { isObject } from '../validation/fields.js'
import { type Mistakes, placeOf } from '../validation/issues.js'
import { camelCase } from '../validation/setting-names.js'
import { problem, unknownName } from './messages.js'
import { settingGroups } from './settings.js'

/** One member of the file: what it is, and its place as the file spells it. */
export interface Member {
  readonly value: unknown
  readonly place: string
}

/** By the name as it is known here. */
export type Part = ReadonlyMap<string, Member>

/** The members of a section, those of its groups among them. A group that is there says its name as the type. */
export function openSection(
  section: Member | undefined,
  known: string,
  names: readonly string[],
  mistakes: Mistakes,
): Part {
  const groups = settingGroups[known] ?? {}
  const place = section?.place ?? known
  const part = new Map(openPart(section?.value, place, [...names, ...Object.keys(groups)], mistakes))
  for (const [name, members] of Object.entries(groups)) {
    const group = part.get(name)
    if (group === undefined) continue
    for (const [inner, member] of openPart(group.value, group.place, Object.keys(members), mistakes)) {
      const key = members[inner] as string
      const other = part.get(key)
      if (other !== undefined) mistakes.add(member.place, sameAs(other.place))
      part.set(key, member)
    }
    if (names.includes('type') && !part.has('type')) part.set('type', { value: name, place: group.place })
  }
  return part
}

/** One object of the file. What is left empty, or left out, has nothing in it. */
export function openPart(value: unknown, path: string, names: readonly string[], mistakes: Mistakes): Part {
  const part = new Map<string, Member>()
  const spelling = new Map<string, string>()
  if (!isObject(value)) {
    const allowed = `an object of ${names.join(', ')}`
    if (value !== undefined && value !== null) mistakes.add(path || 'document', problem(value, allowed))
    return part
  }
  for (const [spelt, member] of Object.entries(value)) {
    const name = camelCase(spelt)
    const other = spelling.get(name)
    const place = placeOf(path, isName(spelt) ? spelt : '…')
    if (!names.includes(name)) mistakes.add(place, unknownName(name, names))
    else if (other === undefined) part.set(name, { value: member, place })
    else mistakes.add(place, sameAs(other))
    if (other === undefined) spelling.set(name, spelt)
  }
  return part
}

/** Where a colon is missing, a value may be taken for a name, and not every value may be shown. */
const isName = (spelt: string): boolean =>
  /^[A-Za-z_][\w-]{0,39}$/.test(spelt) && spelt.replaceAll(/\D/g, '').length <= 1

export const sameAs = (other: string): string =>
  `found beside ${other}, which means the same; allowed: only one of them`
