import { FluxGateError } from '../core/errors.js'
import { interpretPath } from '../core/matching/paths/normalise-path.js'
import { compilePathPattern, pathPatternIssue } from '../core/matching/paths/path-pattern.js'
import { matchesPath } from '../core/matching/paths/tree-search.js'

export interface PathFilterOptions {
  /** Path patterns of the requests that are limited. Default: all. */
  readonly includePatterns?: readonly string[] | undefined
  /** Path patterns of requests that are not limited. Takes precedence over `includePatterns`. */
  readonly excludePatterns?: readonly string[] | undefined
}

/**
 * Returns a predicate for limited paths, or undefined if all paths are limited. A path that servers interpret
 * differently is limited if one of its interpretations is.
 */
export function compilePathFilter(options: PathFilterOptions): ((path: string) => boolean) | undefined {
  const included = compilePatterns('includePatterns', options.includePatterns)
  const excluded = compilePatterns('excludePatterns', options.excludePatterns)
  if (included.length === 0 && excluded.length === 0) return undefined
  const isLimited = (normal: string): boolean => {
    if (excluded.some((pattern) => matchesPath(pattern, normal))) return false
    return included.length === 0 || included.some((pattern) => matchesPath(pattern, normal))
  }
  return (path) => {
    const read = interpretPath(path)
    return typeof read === 'string' ? isLimited(read) : read.some(isLimited)
  }
}

function compilePatterns(option: string, patterns: readonly string[] = []) {
  return patterns.map((text, index) => {
    const issue = pathPatternIssue(text)
    if (issue === undefined) return compilePathPattern(text)
    throw new FluxGateError('FLUXGATE_CONFIG_INVALID', `${option}[${index}]: ${issue}.`)
  })
}
