/** Loaded before a program, it makes the program believe that it is an hour later. */
const hourMs = 3_600_000
const now = Date.now
Date.now = () => now() + hourMs
Object.defineProperty(performance, 'timeOrigin', { value: performance.timeOrigin + hourMs })
