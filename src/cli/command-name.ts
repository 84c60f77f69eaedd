/** The command as the user can type it. npx runs it by the name of the package, without adding it to the PATH. */
export const commandName = (): string => (process.env.npm_command === 'exec' ? 'npx fluxgate-js' : 'fluxgate')
