import type { Config } from '../../config/config.js'
import type { RuleSet } from '../../core/rule.js'
import { displayPath } from '../output/shown-path.js'
import type { StartOptions } from './arguments.js'

/** The name of the rules in reports: the path of a rules file, or the source of a rule store. */
export function rulesLabel({ rules: path }: StartOptions, config: Config, source: string) {
  const { type } = config.rules
  if (path === undefined && type !== 'file') return { rules: source, rulesType: type }
  return { rules: displayPath(path ?? config.rules.path), rulesType: 'file' as const }
}

export const countRules = (ruleSets: readonly RuleSet[]): number =>
  ruleSets.reduce((sum, { rules }) => sum + rules.length, 0)
