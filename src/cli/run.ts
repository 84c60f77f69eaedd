import { type Command, CommanderError } from 'commander'
import { exitStatus } from './exit-status.js'
import { describeFailure, UsageError } from './failure.js'
import { endQuietlyOnClosedPipe, paintFor } from './output/output.js'

/** Runs the command named by the arguments. Does not call `process.exit`, so that all output is flushed. */
export async function run(program: Command, argv: readonly string[]): Promise<void> {
  endQuietlyOnClosedPipe()
  for (const command of withSubcommands(program)) prepare(command)
  try {
    await program.parseAsync(argv)
  } catch (error) {
    process.exitCode = statusOf(error)
    // Commander has already printed the message.
    if (error instanceof CommanderError) return
    const paint = paintFor(process.stderr)
    process.stderr.write(`${paint('red', 'error:')} ${describeFailure(error)}\n`)
    if (error instanceof UsageError) process.stderr.write(`${helpHint}\n`)
  }
}

const helpHint = '(run with --help for options and examples)'

/** Settings shared by all commands. Subcommands do not inherit them when they are created separately. */
function prepare(command: Command): void {
  command.exitOverride().showSuggestionAfterError().showHelpAfterError(helpHint).configureHelp({ helpWidth: 100 })
}

function* withSubcommands(command: Command): Generator<Command> {
  yield command
  for (const subcommand of command.commands) yield* withSubcommands(subcommand)
}

function statusOf(error: unknown): number {
  if (error instanceof CommanderError && error.exitCode === 0) return exitStatus.ok
  return exitStatus.failed
}
