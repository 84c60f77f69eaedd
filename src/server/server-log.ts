/** Where the server says what happens to it: changes, mistakes, its beginning and end. Fields hold no secrets. */
export interface ServerLog {
  info(message: string, fields?: Readonly<Record<string, unknown>>): void
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void
  error(message: string, fields?: Readonly<Record<string, unknown>>): void
}

export const silentLog: ServerLog = { info() {}, warn() {}, error() {} }
