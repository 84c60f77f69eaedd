/**
 * A child process that cannot outlive this one, even if this process crashes or is killed with SIGKILL. A small shell
 * starts the child and then waits for its own standard input to end, which the kernel closes when this process is gone.
 * The shell has its own session, so Ctrl-C in a terminal does not end it before its child.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'

const guard = `
directory=$1
shift
"$@" >&2 </dev/null &
child=$!
echo "$child"
exec >/dev/null 2>&1
read -r order
kill -9 "$child"
wait "$child"
[ "$order" = keep ] || rm -rf "$directory"
`

export interface GuardedProcess {
  readonly pid: number
  isRunning(): boolean
  /** Resolves when the process has exited, by itself or by a signal. */
  readonly ended: Promise<void>
  /** The end of its output. */
  output(): string
  /** Kills it with SIGKILL if it is running. Its process and its files are gone when this resolves. */
  end(directory: 'keep' | 'remove'): Promise<void>
}

/** `directory` holds the files of the process and is removed with it. */
export async function launchGuarded(command: readonly string[], directory: string): Promise<GuardedProcess> {
  const shell = spawn('/bin/sh', ['-c', guard, 'guard', directory, ...command], { detached: true, cwd: directory })
  const guardEnded = once(shell, 'exit')
  shell.stdin.on('error', () => {})
  let running = true
  let output = ''
  shell.stderr.setEncoding('utf8').on('data', (text: string) => {
    output = (output + text).slice(-8_000)
  })
  // Only the child holds this stream once the shell has closed it.
  const ended = once(shell.stderr, 'end').then(() => {
    running = false
  })
  const [line] = (await once(shell.stdout.setEncoding('utf8'), 'data')) as [string]
  setReferenced(shell, false)
  return {
    pid: Number(line),
    isRunning: () => running,
    ended,
    output: () => output.trim(),
    async end(files) {
      setReferenced(shell, true)
      shell.stdin.end(files === 'keep' ? 'keep\n' : '')
      await guardEnded
      running = false
    },
  }
}

/** A script that does not stop a server can still exit. */
function setReferenced(shell: ChildProcess, referenced: boolean): void {
  const method = referenced ? 'ref' : 'unref'
  shell[method]()
  for (const stream of [shell.stdin, shell.stdout, shell.stderr]) (stream as Socket | null)?.[method]()
}
