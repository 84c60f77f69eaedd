/** The command line that `npm run batteries` and `npm run chaos` have in common. */
import { parseArgs } from 'node:util'

export class UsageError extends Error {}

/** Options of the form `--name value`, and flags without a value. */
export class RunOptions {
  readonly #values: Readonly<Record<string, string | boolean | undefined>>

  constructor(args: readonly string[], names: readonly string[], flags: readonly string[] = []) {
    const options: Record<string, { type: 'string' | 'boolean' }> = { help: { type: 'boolean' } }
    for (const name of names) options[name] = { type: 'string' }
    for (const name of flags) options[name] = { type: 'boolean' }
    try {
      this.#values = parseArgs({ args: [...args], options }).values as Record<string, string | boolean>
    } catch (error) {
      throw new UsageError(error instanceof Error ? error.message : String(error))
    }
  }

  has(name: string): boolean {
    return this.#values[name] !== undefined
  }

  text(name: string): string | undefined {
    const value = this.#values[name]
    return typeof value === 'string' ? value : undefined
  }

  integer(name: string, fallback: number, lowest: number): number {
    const value = this.#number(name)
    if (value === undefined) return fallback
    if (!Number.isSafeInteger(value) || value < lowest) throw this.#invalid(name, `an integer of at least ${lowest}`)
    return value
  }

  positive(name: string, fallback: number): number {
    const value = this.#number(name)
    if (value === undefined) return fallback
    if (!(value > 0 && Number.isFinite(value))) throw this.#invalid(name, 'a positive number')
    return value
  }

  /** The seed of the first run: random unless it is given. */
  seed(): number {
    return this.integer('seed', newSeed(), 0)
  }

  #number(name: string): number | undefined {
    const text = this.text(name)
    if (text === undefined) return undefined
    return text.trim() === '' ? Number.NaN : Number(text)
  }

  #invalid(name: string, expected: string): UsageError {
    return new UsageError(`--${name} must be ${expected}; received "${this.text(name)}".`)
  }
}

export const newSeed = (): number => 1 + Math.floor(Math.random() * 1e6)

interface Command {
  readonly help: string
  /** Names of the options with a value. */
  readonly options: readonly string[]
  readonly flags?: readonly string[]
  /** Validates the options, and returns the function that runs the command. It resolves with the exit status. */
  prepare(options: RunOptions): () => Promise<number>
}

/** Returns the exit status: 2 if the options are invalid. */
export async function runCommand(args: readonly string[], command: Command): Promise<number> {
  let run: () => Promise<number>
  try {
    const options = new RunOptions(args, command.options, command.flags)
    if (options.has('help')) {
      console.log(command.help)
      return 0
    }
    run = command.prepare(options)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    console.error(`${error.message}\n\n${command.help}`)
    return 2
  }
  return await run()
}
