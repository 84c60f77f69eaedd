import { FluxGateError } from '../core/errors.js'
import { readPath } from '../core/matching/paths/normalise-path.js'
import { compilePathPattern, pathPatternIssue } from '../core/matching/paths/path-pattern.js'
import { matchesPath } from '../core/matching/paths/path-search.js'

export interface PathFilterOptions {
  /** Only these paths are limited; default all. */
  readonly includePatterns?: readonly string[] | undefined
  /** These are not, whatever else is said. */
  readonly excludePatterns?: readonly string[] | undefined
}

/**
 * Whether a path is limited; undefined if all are, so that nothing is spent on asking. A path that servers read differently
 * is limited if one of its readings is.
 */
export function compilePathFilter(options: PathFilterOptions): ((path: string) => boolean) | undefined {
  const included = compiled('includePatterns', options.includePatterns)
  const excluded = compiled('excludePatterns', options.excludePatterns)
  if (included.length === 0 && excluded.length === 0) return undefined
  const isLimited = (normal: string): boolean => {
    if (excluded.some((pattern) => matchesPath(pattern, normal))) return false
    return included.length === 0 || included.some((pattern) => matchesPath(pattern, normal))
  }
  return (path) => {
    const read = readPath(path)
    return typeof read === 'string' ? isLimited(read) : read.some(isLimited)
  }
}

function compiled(place: string, patterns: readonly string[] = []) {
  return patterns.map((text, index) => {
    const mistake = pathPatternIssue(text)
    if (mistake === undefined) return compilePathPattern(text)
    throw new FluxGateError('FLUXGATE_CONFIG_INVALID', `${place}[${index}]: ${mistake}.`)
  })
}
