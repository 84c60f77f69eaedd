/** Messages between the primary and its workers. Either of them may end at any time, which must not end the other. */
import type { Worker } from 'node:cluster'

/** What a worker reports to the process that started it. */
export interface WorkerMessage {
  readonly event: string
  readonly value: unknown
}

/**
 * Sends without failing: an error (EPIPE, ERR_IPC_CHANNEL_CLOSED) means that the worker has ended, which its `exit` event
 * reports. Without a callback, Node would emit the error, and it would end the primary.
 */
export function sendToWorker(worker: Worker, message: object | string): void {
  if (worker.isConnected()) worker.process.send(message, ignore)
}

/** The same in a worker: if the primary has ended, the worker is disconnected and stops. */
export function sendToPrimary(message: object): void {
  if (process.connected) process.send?.(message, undefined, undefined, ignore)
}

const ignore = (): void => {}
