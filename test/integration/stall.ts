/** Blocks the event loop of this process, as a long garbage collection or a large JSON.parse does. */
export function stall(ms: number): void {
  const endsAt = performance.now() + ms
  while (performance.now() < endsAt);
}
