import { type Config, loadConfig } from '../../config/config.js'

/** Loads the configuration of `--config`, and of the environment variables also without a file. */
export const readConfig = ({ config: path }: { readonly config?: string | undefined }): Promise<Config> =>
  loadConfig({ path, env: process.env, cwd: process.cwd() })
