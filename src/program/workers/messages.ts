/** Messages between the primary and its workers. Either side may exit at any time, which must not crash the other. */
import type { Worker } from 'node:cluster'

/** A report of a worker to the primary. */
export interface WorkerMessage {
  readonly event: string
  readonly value: unknown
}

/**
 * Sends a message and ignores errors: EPIPE and ERR_IPC_CHANNEL_CLOSED mean that the worker has exited, which its `exit` event
 * reports. Without a callback, Node would emit the error and crash the primary.
 */
export function sendToWorker(worker: Worker, message: object | string): void {
  if (worker.isConnected()) worker.process.send(message, ignore)
}

/** Sends a message to the primary and ignores errors: if the primary has exited, the worker is disconnected and stops. */
export function sendToPrimary(message: object): void {
  if (process.connected) process.send?.(message, undefined, undefined, ignore)
}

const ignore = (): void => {}
