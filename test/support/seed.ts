import * as fc from 'fast-check'

/**
 * Makes properties and models run with the same values each time. So the verdict on a change doesn't depend
 * on luck. `SLUICE_TEST_SEED` selects other values. `npm run test:explore` looks for values that fail.
 */
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(process.env['SLUICE_TEST_SEED'] ?? 1) })
