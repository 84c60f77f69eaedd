/** The command as the user can type it: npx runs it without adding it to the path, and knows it by the name of the package. */
export const commandName = (): string => (process.env.npm_command === 'exec' ? 'npx fluxgate-js' : 'fluxgate')
