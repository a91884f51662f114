/** Whether this is `npm run test:full`, which runs the long form of tests that have a short one. */
export const full = process.env.TEST_FULL === '1'
