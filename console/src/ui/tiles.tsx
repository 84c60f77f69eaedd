import type { ComponentChildren } from 'preact'

interface Tile {
  readonly color: 'accent' | 'bad' | 'ok' | 'shadow' | 'warn'
  readonly name: string
  readonly value: ComponentChildren
  readonly detail?: ComponentChildren
}

/** Important numbers at a glance. */
export const Tiles = ({ label, tiles }: { readonly label: string; readonly tiles: readonly Tile[] }) => (
  <section class="tiles" aria-label={label}>
    {tiles.map(({ color, name, value, detail }) => (
      <div key={name} class={`tile tile-${color}`}>
        <span class="tile-name">{name}</span>
        <span class="tile-value">{value}</span>
        {detail !== undefined && <span class="muted small">{detail}</span>}
      </div>
    ))}
  </section>
)
