// @ts-check
/** Shows one line of progress on a terminal. An empty text removes it. */
export function progress(/** @type {string} */ text) {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`)
}
