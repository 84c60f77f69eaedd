import { type Command, CommanderError } from 'commander'
import { exitStatus } from './exit-status.js'
import { describeFailure, UsageError } from './failure.js'
import { endQuietlyOnClosedPipe, paintFor } from './output/output.js'

/** Runs the command that the arguments name. Leaves the process to end by itself, so that all output is written. */
export async function run(program: Command, argv: readonly string[]): Promise<void> {
  endQuietlyOnClosedPipe()
  for (const command of withSubcommands(program)) prepare(command)
  try {
    await program.parseAsync(argv)
  } catch (error) {
    process.exitCode = statusOf(error)
    // Commander has already said what was wrong.
    if (error instanceof CommanderError) return
    const paint = paintFor(process.stderr)
    process.stderr.write(`${paint('red', 'error:')} ${describeFailure(error)}\n`)
    if (error instanceof UsageError) process.stderr.write(`${helpHint}\n`)
  }
}

const helpHint = '(add --help for the options and examples)'

/** Commands are made on their own and joined later, so that what all share is set here. */
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
