import { registerHooks } from 'node:module'

/**
 * Removes the worker's guards against hostile endpoints and records (`node --import without-guards.ts …`), to
 * measure their cost. The hooks replace modules of `src` when they are loaded, so that the worker itself
 * needs no such switch.
 */

const replaced = new Map(
  [
    ['delivery/connect/guarded-connector.ts', 'connector.ts'],
    ['delivery/send/connection.ts', 'connection.ts'],
    ['message/depth-and-keys.ts', 'structure.ts'],
  ].map(([guarded, unguarded]) => [
    new URL(`../../src/${guarded}`, import.meta.url).href,
    new URL(`./unguarded/${unguarded}`, import.meta.url).href,
  ]),
)

registerHooks({
  resolve(specifier, context, next) {
    const resolved = next(specifier, context)
    const url = replaced.get(resolved.url)
    // A replacement may import the module that it replaces.
    return url === undefined || url === context.parentURL ? resolved : { ...resolved, url }
  },
})
