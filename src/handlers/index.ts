export type { CheckOptions, Handler } from '../core/handler.js'
export { StandaloneHandler, type StandaloneOptions } from './standalone.js'
