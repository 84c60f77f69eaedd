import { FluxGateError } from '../../../../core/errors.js'
import { hashSlotOfBytes } from '../../../client/hash-slot.js'
import { nodeText, type RedisNode } from '../../../client/open/address.js'
import type { CommandWriter } from '../../commands/writer.js'
import { isServerFailure, stopped, type Tally } from '../../tally.js'
import { type BulkAccess, BulkSocket } from '../bulk-socket.js'
import { errorIn, type Reply } from '../reply-reader.js'
import { sendBytes } from '../server-sink.js'
import { type BulkSink, Waiter } from '../sink.js'
import { ClusterNode, type Sent } from './node.js'
import { keyOf, type SlotOwners } from './slots.js'

/** The maximum number of redirections of one command. More means that the nodes disagree about the owner of its slot. */
const maxRedirections = 16
const tryAgainMs = 25
/** The maximum size of unanswered commands, which are kept because a node may redirect them. */
const maxKeptBytes = 8 * 2 ** 20

/**
 * Sends each record to the primary that owns its slot. If a slot has migrated, redirected commands go to the new owner, and
 * no further record is sent until all commands in flight are answered. Commands for one key are therefore executed in the
 * order of their records.
 */
export class ClusterSink implements BulkSink {
  onStop: (error: Error) => void = () => {}
  readonly #out: CommandWriter
  readonly #tally: Tally
  readonly #maxOutstanding: number
  readonly #owners: SlotOwners
  readonly #access: BulkAccess
  readonly #nodes = new Map<string, ClusterNode>()
  readonly #waiter = new Waiter()
  #isFull = false
  #unsentBytes = 0
  #keptBytes = 0
  #inFlight = 0
  /** Commands that were answered with TRYAGAIN and are resent after a delay. */
  readonly #later = new Set<Sent>()
  /** True after a redirection until all commands in flight are answered. New commands are held back until then. */
  #isSettling = false
  #failedLine: number | undefined

  constructor(out: CommandWriter, tally: Tally, maxOutstanding: number, owners: SlotOwners, access: BulkAccess) {
    this.#out = out
    this.#tally = tally
    this.#maxOutstanding = maxOutstanding
    this.#owners = owners
    this.#access = access
  }

  get isFull(): boolean {
    return this.#isFull || this.#isSettling || this.#unsentBytes >= sendBytes || this.#keptBytes >= maxKeptBytes
  }

  get unansweredLine(): number | undefined {
    const lines = [...this.#nodes.values()].flatMap(({ unanswered }) => unanswered.map(({ line }) => line))
    for (const { line } of this.#later) lines.push(line)
    if (this.#failedLine !== undefined) lines.push(this.#failedLine)
    return lines.length === 0 ? undefined : lines.reduce((least, line) => Math.min(least, line))
  }

  put(line: number): void {
    const bytes = this.#out.lastCommand()
    const { records } = this.#out
    const key = keyOf(this.#out)
    this.#out.drop()
    this.#unsentBytes += bytes.length
    this.#keptBytes += bytes.length
    this.#inFlight++
    const owner = this.#owners.of(key === undefined ? 0 : hashSlotOfBytes(key))
    const node = this.#nodeAt(owner)
    node.add({ line, records, bytes, redirections: 0 })
    if (node.unanswered.length >= this.#maxOutstanding) this.#isFull = true
  }

  flush(): Promise<void> | undefined {
    if (this.#waiter.error !== undefined) return Promise.reject(this.#waiter.error)
    this.#isFull = false
    this.#unsentBytes = 0
    let hasRoom = !this.#isSettling && this.#keptBytes < maxKeptBytes
    for (const node of this.#nodes.values()) {
      node.send()
      if (node.isBlocked || node.unanswered.length >= this.#maxOutstanding) hasRoom = false
    }
    return hasRoom ? undefined : this.#waiter.until(() => this.#hasRoom())
  }

  async finish(): Promise<void> {
    await this.flush()
    await this.#waiter.until(() => this.#inFlight === 0)
    await Promise.all([...this.#nodes.values()].map((node) => node.finish()))
  }

  close(): void {
    for (const node of this.#nodes.values()) node.close()
  }

  #hasRoom(): boolean {
    if (this.#isSettling) return false
    if (this.#keptBytes > maxKeptBytes / 2) return false
    for (const node of this.#nodes.values())
      if (node.isBlocked || node.unanswered.length > this.#maxOutstanding / 2) return false
    return true
  }

  #nodeAt(target: RedisNode): ClusterNode {
    const address = nodeText(target)
    const known = this.#nodes.get(address)
    if (known !== undefined) return known
    const node = new ClusterNode(BulkSocket.open(target, this.#access), {
      onReply: (sent, reply) => this.#answered(target, sent, reply),
      onRoom: () => this.#waiter.recheck(),
      onEnd: (error) =>
        this.#stop(error instanceof FluxGateError ? error : stopped(`${address}: ${error.message}`, error)),
    })
    this.#nodes.set(address, node)
    return node
  }

  #answered(target: RedisNode, sent: Sent, reply: Reply): void {
    const error = errorIn(reply)
    if (error !== undefined && this.#redirect(target, sent, error)) return
    this.#inFlight--
    this.#keptBytes -= sent.bytes.length
    if (error === undefined) this.#tally.succeed(reply, sent.records)
    else if (isServerFailure(error)) {
      this.#failedLine = Math.min(this.#failedLine ?? sent.line, sent.line)
      this.#stop(stopped(`${nodeText(target)} rejects further commands: ${error.replace(/\.$/, '')}`))
    } else this.#tally.fail(sent.line, error, sent.records)
    if (this.#inFlight === 0) this.#isSettling = false
    this.#waiter.recheck()
  }

  /** Resends a redirected command, which was not executed. Returns false if the reply is not a redirection. */
  #redirect(sender: RedisNode, sent: Sent, error: string): boolean {
    const isTryAgain = error.startsWith('TRYAGAIN')
    const [, kind, slot, address] = /^(MOVED|ASK) (\d+) (\S+)$/.exec(error) ?? []
    if ((!isTryAgain && kind === undefined) || sent.redirections >= maxRedirections) return false
    const again = { ...sent, redirections: sent.redirections + 1 }
    this.#isSettling = true
    if (isTryAgain) {
      this.#later.add(again)
      setTimeout(() => {
        this.#later.delete(again)
        this.#resend(sender, again)
      }, tryAgainMs)
    } else {
      const target = parseAddress(address as string, sender)
      if (kind === 'MOVED') this.#owners.set(Number(slot), target)
      this.#resend(target, again, kind === 'ASK')
    }
    return true
  }

  #resend(target: RedisNode, sent: Sent, isAsking = false): void {
    if (this.#waiter.error !== undefined) return
    const node = this.#nodeAt(target)
    node.add(sent, isAsking)
    node.send()
  }

  #stop(error: Error): void {
    this.#waiter.fail(error)
    this.onStop(error)
  }
}

/** Parses `host:port`. An empty host means the host of the node that sent the redirection. */
function parseAddress(address: string, from: RedisNode): RedisNode {
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon)
  return { host: host === '' ? from.host : host, port: Number(address.slice(colon + 1)) }
}
