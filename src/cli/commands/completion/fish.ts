import { type CompletedOption, type Level, pathsOf } from './levels.js'

/** `__fluxgate_at` is true if the words typed so far lead to the given command. */
export const fish = (levels: readonly Level[]): string =>
  [
    '# fish completion for fluxgate',
    'function __fluxgate_at',
    '  set -l at',
    '  for word in (commandline -opc)[2..]',
    `    contains -- (string join ' ' -- $at $word) ${pathsOf(levels).map(quoted).join(' ')}; and set -a at $word`,
    '  end',
    '  test "$at" = "$argv[1]"',
    'end',
    'complete -c fluxgate -f',
    ...levels.flatMap(linesOf),
  ].join('\n')

function linesOf({ path, subcommands, options, choices }: Level): string[] {
  const line = (rest: string): string => `complete -c fluxgate -n ${quoted(`__fluxgate_at "${path}"`)} ${rest}`
  return [
    ...subcommands.map(({ name, description }) => line(`-a ${name} -d ${quoted(description)}`)),
    ...choices.map((name) => line(`-a ${name}`)),
    ...options.map((option) => line(`${formOf(option)} ${flagsOf(option)}-d ${quoted(option.description)}`)),
  ]
}

const formOf = ({ name }: CompletedOption): string =>
  name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`

const valueFlags = { FILE: '-r -F ', TEXT: '-x ' } as const

function flagsOf({ value, choices }: CompletedOption): string {
  if (value === undefined) return ''
  return value === 'CHOICE' ? `-x -a ${quoted(choices.join(' '))} ` : valueFlags[value]
}

const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
