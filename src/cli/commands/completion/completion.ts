/** Generates static shell completion scripts for commands, options and their values. */
import { Argument, Command } from 'commander'
import { print } from '../../output/output.js'
import { bash } from './bash.js'
import { fish } from './fish.js'
import { type Level, levelsOf } from './levels.js'
import { zsh } from './zsh.js'

const scripts = { bash, zsh, fish } satisfies Record<string, (levels: readonly Level[]) => string>

const examples = `
Examples:
  $ source <(fluxgate completion bash)
      enable completion in this shell; add the line to ~/.bashrc, or with zsh to ~/.zshrc, to keep it
  $ fluxgate completion zsh > "\${fpath[1]}/_fluxgate"
  $ fluxgate completion fish > ~/.config/fish/completions/fluxgate.fish
`

/** `program` returns the program with all commands loaded. */
export function completionCommand(program: () => Promise<Command>): Command {
  return new Command('completion')
    .description('Print a shell completion script.')
    .addArgument(new Argument('<shell>', 'target shell').choices(Object.keys(scripts)))
    .addHelpText('after', examples)
    .action(async (shell: keyof typeof scripts) => print(scripts[shell](levelsOf(await program()))))
}
