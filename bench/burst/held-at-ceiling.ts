import { HookLoad } from '../../src/delivery/load/hook-load.ts'

/**
 * Runs as a worker whose requests in flight aren't learned: each hook gets as many at once as the catalog's
 * default `maxInFlight` allows.
 */

const ceiling = 64
Object.defineProperty(HookLoad.prototype, 'cap', { get: () => ceiling })
HookLoad.prototype.hasRoom = () => true
HookLoad.prototype.perSecondAt = () => undefined
await import('../../src/main.ts')
