import { type Config, loadConfig } from '../../config/config.js'

/** Options shared by `start`, `serve` and `gateway`. */
export interface StartArguments {
  readonly config?: string
  readonly rules?: string
  readonly port?: number
  readonly host?: string
  readonly json?: true
}

export const readConfig = (options: StartArguments): Promise<Config> =>
  loadConfig({ path: options.config, env: process.env, cwd: process.cwd() })
