import { type Completion, type Level, pathsOf, valuesOf } from './levels.js'

/** Like the script for bash, with descriptions. Works in a directory of `fpath`, and with `source`. */
export const zsh = (levels: readonly Level[]): string => `#compdef fluxgate
_fluxgate() {
  local at="" word
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "\${at:+$at }$word" in
      (${pathsOf(levels).map(quoted).join('|')}) at="\${at:+$at }$word" ;;
    esac
  done
  case "$at:\${words[CURRENT-1]}" in
${valuesOf(levels)
  .map(
    ({ path, name, value, choices }) => `    (${quoted(`${path}:${name}`)}) ${completeValue(value, choices)}return ;;`,
  )
  .join('\n')}
  esac
  local -a offered options
  case "$at" in
${levels.map((level) => `    (${quoted(level.path)}) offered=(${described(wordsOf(level))}); options=(${described(level.options)}) ;;`).join('\n')}
  esac
  _describe 'command' offered
  _describe -o 'option' options
}
if [[ "$funcstack[1]" == "_fluxgate" ]]; then _fluxgate "$@"; else compdef _fluxgate fluxgate; fi`

const wordsOf = ({ subcommands, choices }: Level): Completion[] => [
  ...subcommands,
  ...choices.map((name) => ({ name, description: '' })),
]

const described = (completions: readonly Completion[]): string =>
  completions
    .map(({ name, description }) => quoted(description === '' ? name : `${name}:${description.replaceAll(':', '\\:')}`))
    .join(' ')

function completeValue(value: 'CHOICE' | 'FILE' | 'TEXT', choices: readonly string[]): string {
  if (value === 'TEXT') return ''
  return value === 'FILE' ? '_files; ' : `compadd -- ${choices.join(' ')}; `
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
