/**
 * True if the promise settles before a timer of `ms` fires. Use it only for work that ends by a shorter timer in this
 * process: timers fire in the order of their deadlines, so a stalled event loop delays both alike.
 */
export async function settlesWithin(ms: number, promise: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, ms, false)
  })
  const settled = promise.then(
    () => true,
    () => true,
  )
  return Promise.race([settled, late]).finally(() => clearTimeout(timer))
}
