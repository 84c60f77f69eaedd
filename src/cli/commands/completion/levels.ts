import type { Command } from 'commander'

/** The words that can follow one command: subcommands, options and values of arguments. */
export interface Level {
  /** The command names that lead to it, separated by spaces; empty for the program itself. */
  readonly path: string
  readonly subcommands: readonly Completion[]
  readonly options: readonly CompletedOption[]
  /** The choices of its arguments. */
  readonly choices: readonly string[]
}

export interface Completion {
  readonly name: string
  readonly description: string
}

export interface CompletedOption extends Completion {
  /** The kind of value that follows; undefined for a flag. */
  readonly value: 'CHOICE' | 'FILE' | 'TEXT' | undefined
  readonly choices: readonly string[]
}

/** The levels of a command and of all its subcommands. */
export function levelsOf(command: Command, path: readonly string[] = []): Level[] {
  const own: Level = {
    path: path.join(' '),
    subcommands: command.commands.map((one) => ({ name: one.name(), description: one.description() })),
    options: command.createHelp().visibleOptions(command).map(optionOf),
    choices: command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices),
  }
  return [own, ...command.commands.flatMap((one) => levelsOf(one, [...path, one.name()]))]
}

function optionOf({
  long,
  short,
  description,
  flags,
  required,
  optional,
  argChoices = [],
}: Command['options'][number]) {
  const value =
    argChoices.length > 0 ? 'CHOICE' : /<file>/.test(flags) ? 'FILE' : required || optional ? 'TEXT' : undefined
  return { name: long ?? short ?? '', description, value, choices: argChoices } as const
}

/** The paths of all commands, without that of the program. */
export const pathsOf = (levels: readonly Level[]): string[] => levels.flatMap(({ path }) => (path === '' ? [] : [path]))

/** The places in which a value is typed: a command, and the option before the cursor. */
export const valuesOf = (levels: readonly Level[]) =>
  levels.flatMap(({ path, options }) =>
    options.flatMap(({ name, value, choices }) => (value === undefined ? [] : [{ path, name, value, choices }])),
  )
