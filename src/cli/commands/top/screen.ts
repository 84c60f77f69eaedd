/** Control sequences of terminals. */
const noWrap = '\u001b[?7l'
const wrap = '\u001b[?7h'
const home = '\u001b[H'
const clearLine = '\u001b[K'
const clearBelow = '\u001b[J'

/** Opens the alternate screen. Long lines are cut off at its edge: if they wrapped, the first lines would scroll away. */
export const enterScreen = `\u001b[?1049h\u001b[?25l${noWrap}`
export const leaveScreen = `${wrap}\u001b[?25h\u001b[?1049l`

/** Redraws a screen with this number of rows. The last row stays empty. */
export const screenOf = (lines: readonly string[], rows: number): string =>
  `${home}${lines
    .slice(0, Math.max(1, rows - 1))
    .map((line) => `${line}${clearLine}\n`)
    .join('')}${clearBelow}`
