import type { HookRoom } from '../../src/delivery/lanes/breaker.ts'

/** The room of a hook that takes any number of requests. */
export const roomy: HookRoom = { hasRoom: () => true, readyAtMs: () => 0 }
