import { type Level, pathsOf, valuesOf } from './levels.js'

/** The script derives the current command from the words typed so far, then completes its options and values. */
export const bash = (levels: readonly Level[]): string => `# bash completion for fluxgate
_fluxgate() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" at="" word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${at:+$at }$word" in
      ${quotedList(pathsOf(levels))}) at="\${at:+$at }$word" ;;
    esac
  done
  COMPREPLY=()
  case "$at:$prev" in
${valuesOf(levels)
  .map(({ path, name, value, choices }) => `    "${path}:${name}") ${completeValue(value, choices)}return ;;`)
  .join('\n')}
  esac
  case "$at" in
${levels.map((level) => `    "${level.path}") ${completeWords(wordsOf(level))} ;;`).join('\n')}
  esac
}
complete -F _fluxgate fluxgate`

const quotedList = (texts: readonly string[]): string => texts.map((text) => `"${text}"`).join('|')

const wordsOf = ({ subcommands, options, choices }: Level): string[] => [
  ...subcommands.map(({ name }) => name),
  ...choices,
  ...options.map(({ name }) => name),
]

const completeWords = (words: readonly string[]): string => `COMPREPLY=($(compgen -W "${words.join(' ')}" -- "$cur"))`

/** Names of files may contain spaces, so they are read by line. */
function completeValue(value: 'CHOICE' | 'FILE' | 'TEXT', choices: readonly string[]): string {
  if (value === 'TEXT') return ''
  if (value === 'CHOICE') return `${completeWords(choices)}; `
  return `compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); `
}
