/** From the environment to replay a run that has failed, otherwise a new one. */
export const randomSeed = (): number => Number(process.env.FLUXGATE_TEST_SEED ?? Date.now() % 2 ** 31)
