import * as fc from 'fast-check'

/**
 * Properties and models are run with the same values each time: what a change is judged by doesn't depend on luck.
 * `SLUICE_TEST_SEED` gives other ones; `npm run test:explore` looks for one that fails.
 */
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(process.env['SLUICE_TEST_SEED'] ?? 1) })
