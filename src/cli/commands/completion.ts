/** Generates static shell completion scripts for commands, options and option choices. */
import { Argument, Command } from 'commander'
import { print } from '../output/output.js'

type Shell = 'bash' | 'zsh' | 'fish'

const examples = `
Examples:
  $ source <(fluxgate completion bash)
      enable completion in this shell; add the line to ~/.bashrc to keep it
  $ fluxgate completion zsh > "\${fpath[1]}/_fluxgate"
  $ fluxgate completion fish > ~/.config/fish/completions/fluxgate.fish
`

/** `program` returns the program with all commands loaded. */
export function completionCommand(program: () => Promise<Command>): Command {
  return new Command('completion')
    .description('Print a shell completion script.')
    .addArgument(new Argument('<shell>', 'target shell').choices(['bash', 'zsh', 'fish']))
    .addHelpText('after', examples)
    .action(async (shell: Shell) => print(scripts[shell](levelsOf(await program(), []))))
}

/** One command with its subcommands and options. `path` holds the command names that lead to it. */
interface Level {
  readonly path: readonly string[]
  readonly subcommands: readonly { readonly name: string; readonly description: string }[]
  readonly options: readonly CompletedOption[]
}

interface CompletedOption {
  readonly name: string
  readonly description: string
  readonly takesValue: boolean
  readonly takesFile: boolean
  readonly choices: readonly string[]
}

function levelsOf(command: Command, path: readonly string[]): Level[] {
  const help = command.createHelp()
  const own: Level = {
    path,
    subcommands: command.commands.map((one) => ({ name: one.name(), description: one.description() })),
    options: help.visibleOptions(command).map((option) => ({
      name: option.long ?? option.short ?? '',
      description: option.description,
      takesValue: option.required || option.optional,
      takesFile: /<file>/.test(option.flags),
      choices: option.argChoices ?? [],
    })),
  }
  return [own, ...command.commands.flatMap((one) => levelsOf(one, [...path, one.name()]))]
}

const words = ({ subcommands, options }: Level): string =>
  [...subcommands.map(({ name }) => name), ...options.map(({ name }) => name)].join(' ')

/** The script derives the current command from the words typed so far, then completes its options and choices. */
function bash(levels: readonly Level[]): string {
  const paths = levels.map(({ path }) => `${path.join(' ')}`).filter((path) => path !== '')
  const values = levels.flatMap(({ path, options }) =>
    options.flatMap(({ name, choices }) =>
      choices.length === 0 ? [] : [[`${path.join(' ')}:${name}`, choices.join(' ')]],
    ),
  )
  return `# bash completion for fluxgate
_fluxgate() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" path="" word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${path:+$path }$word" in
      ${paths.map((path) => `"${path}"`).join('|')}) path="\${path:+$path }$word" ;;
    esac
  done
  case "$path:$prev" in
${values.map(([place, choices]) => `    "${place}") COMPREPLY=($(compgen -W "${choices}" -- "$cur")); return ;;`).join('\n')}
  esac
  case "$path" in
${levels.map((level) => `    "${level.path.join(' ')}") COMPREPLY=($(compgen -W "${words(level)}" -- "$cur")) ;;`).join('\n')}
  esac
}
complete -o default -F _fluxgate fluxgate`
}

/** zsh loads the bash script through bashcompinit. */
const zsh = (levels: readonly Level[]): string =>
  `#compdef fluxgate\nautoload -U +X bashcompinit && bashcompinit\n${bash(levels)}`

function fish(levels: readonly Level[]): string {
  const lines = levels.flatMap(({ path, subcommands, options }) => {
    const here = condition(
      path,
      subcommands.map(({ name }) => name),
    )
    return [
      ...subcommands.map(
        ({ name, description }) => `complete -c fluxgate ${here} -f -a ${name} -d ${quoted(description)}`,
      ),
      ...options.map(({ name, description, takesValue, takesFile, choices }) => {
        const value =
          choices.length > 0 ? `-x -a ${quoted(choices.join(' '))}` : takesFile ? '-r -F' : takesValue ? '-x' : '-f'
        const form = name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`
        return `complete -c fluxgate ${here} ${form} ${value} -d ${quoted(description)}`
      }),
    ]
  })
  return ['# fish completion for fluxgate', 'complete -c fluxgate -f', ...lines].join('\n')
}

function condition(path: readonly string[], subcommands: readonly string[]): string {
  const seen = path.map((name) => `__fish_seen_subcommand_from ${name}`)
  const none = subcommands.length === 0 ? [] : [`not __fish_seen_subcommand_from ${subcommands.join(' ')}`]
  const all = [...seen, ...none].join('; and ')
  return all === '' ? '' : `-n ${quoted(all)}`
}

const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

const scripts: Readonly<Record<Shell, (levels: readonly Level[]) => string>> = { bash, zsh, fish }
