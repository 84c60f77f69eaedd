/** The log of the server: changes, failures, start and stop. Fields must not contain secrets. */
export interface ServerLog {
  info(message: string, fields?: Readonly<Record<string, unknown>>): void
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void
  error(message: string, fields?: Readonly<Record<string, unknown>>): void
}

export const silentLog: ServerLog = { info() {}, warn() {}, error() {} }
