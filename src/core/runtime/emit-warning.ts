/** Emits a process warning. Writes to the console in a runtime without one. */
export function emitWarning(warning: string | Error, options?: { readonly type: string; readonly code: string }): void {
  const emit = globalThis.process?.emitWarning
  if (emit === undefined) console.warn(options === undefined ? warning : `${options.type} ${options.code}: ${warning}`)
  else if (options === undefined) emit(warning)
  else emit(warning as string, options)
}
