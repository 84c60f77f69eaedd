// @ts-check
/** Step: chromium is on the PATH, for the tests of the console. */
import { aptStep } from './apt.mjs'

export const chromium = aptStep({
  program: 'chromium',
  missing: 'The tests of the console run in a real browser, but chromium is not on the PATH.',
  elsewhere: 'Install Chromium, with "chromium" on the PATH',
})
