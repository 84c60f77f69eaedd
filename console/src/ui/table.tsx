import type { ComponentChildren } from 'preact'

interface TableProps {
  /** The text of each column, and the class of its head. */
  readonly head: readonly (readonly [text: string, className?: string])[]
  readonly class?: string
  /** The rows. */
  readonly children: ComponentChildren
}

/** A table that may be wider than the window. It is focusable, so that the arrow keys scroll it. */
export const Table = ({ head, class: className, children }: TableProps) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable with the keyboard
  <div class="table-scroll" tabIndex={0}>
    <table class={className}>
      <thead>
        <tr>
          {head.map(([text, name]) => (
            <th key={text} class={name}>
              {text}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  </div>
)
