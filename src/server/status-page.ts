import type { ApiParts } from './parts.js'

/** Allows only the page's own style sheet: no scripts, no other resources, no framing by other pages. */
export const pageHeaders = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
}

export const styleHeaders = { 'Content-Type': 'text/css; charset=utf-8' }

export const style = `:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100%; margin-bottom: 2rem }
th, td { text-align: left; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #8884 }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums }
.up { color: #2a7d2a } .down { color: #c0392b }
`

/** Renders the status page. It refreshes itself every five seconds, without a script. */
export async function statusPage({ gate, health, statistics }: ApiParts): Promise<string> {
  const { status, store, rules } = await health()
  const summary = await statistics?.summary()
  const line = (name: string, state: string, sinceAt: number | null, error: string | null): string =>
    `<tr><td>${name}<td class="${state === 'UP' ? 'up' : 'down'}">${state}<td>${sinceText(sinceAt)}<td>${escaped(error ?? '')}`
  const sets = gate.ruleSets.map(
    ({ id, description = '', rules }) =>
      `<tr><td>${escaped(id)}<td class="number">${rules.length}<td>${escaped(description)}`,
  )
  const counts = summary?.rules
    .slice(0, 50)
    .map(
      ({ ruleSetId, ruleId, allowed, delayed, denied }) =>
        `<tr><td>${escaped(ruleSetId ?? '–')}<td>${escaped(ruleId ?? '–')}${[allowed, delayed, denied].map(number).join('')}`,
    )
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta http-equiv="refresh" content="5">
<title>FluxGate</title><link rel="stylesheet" href="/console/status.css"></head>
<body>
<h1>FluxGate</h1>
<table>
${line('overall', status, null, null)}
${line('store', store.status, store.sinceAt, store.error)}
${line('rules', rules.status, rules.sinceAt, rules.error)}
</table>
<h2>Rule sets</h2>
<table>
<tr><th>ID<th class="number">rules<th>description
${sets.join('\n')}
</table>
${counts === undefined ? '' : `<h2>Decisions</h2>\n<table>\n<tr><th>rule set<th>rule<th class="number">allowed<th class="number">delayed<th class="number">denied\n${counts.join('\n')}\n</table>`}
<p>API description: <a href="/openapi.json">/openapi.json</a></p>
</body>
</html>
`
}

const sinceText = (instant: number | null): string =>
  instant === null ? '' : `since ${new Date(instant).toISOString()}`

const number = (value: number): string => `<td class="number">${Math.round(value)}`

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

const escaped = (text: string): string => text.replaceAll(/[&<>"']/g, (char) => entities[char] as string)
