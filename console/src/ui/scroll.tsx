import type { ComponentChildren } from 'preact'

/** Content that may be wider than the window. It is focusable, so that the arrow keys scroll it. */
export const Scroll = ({ children }: { readonly children: ComponentChildren }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable with the keyboard
  <div class="table-scroll" tabIndex={0}>
    {children}
  </div>
)
