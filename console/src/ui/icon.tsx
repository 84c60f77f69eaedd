/** Line icons on a grid of 24. They are decoration: the text or the label next to them has the meaning. */
const paths = {
  overview: 'M4 13h4l3-8 4 14 3-6h2',
  rules: 'M4 6h10M18 6h2M4 12h2M10 12h10M4 18h8M16 18h4M16 4v4M8 10v4M14 16v4',
  try: 'M8 5v14l11-7z',
  keys: 'M14 10a4 4 0 1 1-4-4 4 4 0 0 1 4 4zm-1 3 7 7m-3-3 2-2',
  whatif: 'M4 5h16M4 5l6 8v6l4-2v-4l6-8',
  candidates: 'M6 4v16M6 14h6a4 4 0 0 0 4-4V5m-3 3 3-3 3 3',
  playground: 'M9 3v6l-5 9a2 2 0 0 0 2 3h12a2 2 0 0 0 2-3l-5-9V3M7 3h10M7 15h10',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2m0 16v2M4 12H2m20 0h-2M5 5l1.5 1.5m11 11L19 19M5 19l1.5-1.5m11-11L19 5',
  moon: 'M20 14A8 8 0 1 1 10 4a6.5 6.5 0 0 0 10 10z',
  out: 'M10 4H5v16h5M15 8l4 4-4 4M19 12H9',
  close: 'M6 6l12 12M18 6L6 18',
  search: 'M11 5a6 6 0 1 0 0 12 6 6 0 0 0 0-12zm4.5 10.5L20 20',
  plus: 'M12 5v14M5 12h14',
  check: 'M5 13l4 4L19 7',
  warning: 'M12 4l9 16H3zM12 10v4m0 3v.5',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  download: 'M12 4v11m-4-4 4 4 4-4M4 20h16',
  upload: 'M12 15V4m-4 4 4-4 4 4M4 20h16',
  history: 'M4 12a8 8 0 1 0 3-6.2L4 8m0-4v4h4M12 8v4l3 2',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
  undo: 'M9 14 4 9l5-5M4 9h10a6 6 0 0 1 0 12h-3',
  edit: 'M4 20h4L19 9l-4-4L4 16zM13 7l4 4',
  link: 'M9 15l6-6M11 6l1-1a4 4 0 0 1 6 6l-1 1M13 18l-1 1a4 4 0 0 1-6-6l1-1',
} as const

export type IconName = keyof typeof paths

export const Icon = ({ name, size = 18 }: { readonly name: IconName; readonly size?: number }) => (
  <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true">
    <path d={paths[name]} />
  </svg>
)
