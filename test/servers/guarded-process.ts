/**
 * A child process that cannot outlive this one, however this one ends: SIGKILL and a crash included.
 *
 * A small shell starts it and then waits for its own standard input to end, which the kernel sees to when this process
 * is gone. It is in a session of its own, so that Ctrl-C in a terminal does not end the shell before its child.
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
  /** Resolves when the process has ended by itself or by a signal. */
  readonly ended: Promise<void>
  /** The last of what it has printed. */
  output(): string
  /** Ends it with SIGKILL if it still runs; its process id and its files are gone when this resolves. */
  end(directory: 'keep' | 'remove'): Promise<void>
}

/** `directory` is what the process writes to; it is removed with it. */
export async function launchGuarded(command: readonly string[], directory: string): Promise<GuardedProcess> {
  const shell = spawn('/bin/sh', ['-c', guard, 'guard', directory, ...command], { detached: true, cwd: directory })
  const guardEnded = once(shell, 'exit')
  shell.stdin.on('error', () => {})
  let running = true
  let output = ''
  shell.stderr.setEncoding('utf8').on('data', (text: string) => {
    output = (output + text).slice(-8_000)
  })
  // The child alone holds this stream once the shell has let go of it.
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

/** A script that forgets to stop a server still comes to its end. */
function setReferenced(shell: ChildProcess, referenced: boolean): void {
  const method = referenced ? 'ref' : 'unref'
  shell[method]()
  for (const stream of [shell.stdin, shell.stdout, shell.stderr]) (stream as Socket | null)?.[method]()
}
