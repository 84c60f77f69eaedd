export type { CheckOptions, Handler } from '../core/handler.js'
export { compileSnapshot, type Snapshot, type SnapshotOptions } from '../core/snapshot.js'
export { WaitingRoom } from '../core/waiting-room.js'
export { StandaloneHandler, type StandaloneOptions } from './standalone.js'
