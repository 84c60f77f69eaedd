// @ts-check
/**
 * Replaces a generated block of a page. Comments with its name enclose it: `<!-- generated: name -->` and `<!-- end: name -->`.
 *
 * @param {string} page
 * @param {string} name
 * @param {string} content
 */
export function withBlock(page, name, content) {
  const [start, end] = [`<!-- generated: ${name} -->`, `<!-- end: ${name} -->`]
  const [from, to] = [page.indexOf(start), page.indexOf(end)]
  if (from === -1 || to === -1) throw new Error(`The page has no block "${name}".`)
  return `${page.slice(0, from)}${start}\n\n${content}\n\n${page.slice(to)}`
}
