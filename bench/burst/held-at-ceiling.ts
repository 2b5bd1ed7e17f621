import { holdLimits } from '../support/held-limits.ts'

// Runs as a worker whose requests in flight aren't learned.
holdLimits()
await import('../../src/main.ts')
