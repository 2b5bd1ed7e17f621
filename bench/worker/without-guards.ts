import { registerHooks } from 'node:module'

/**
 * `node --import without-guards.ts …`: the worker without what guards it against hostile endpoints and records, to measure
 * what that costs. Modules of `src` are replaced as they are loaded, so that the worker itself has no such switch.
 */

const replaced = new Map(
  [
    ['delivery/connector.ts', 'connector.ts'],
    ['delivery/connection.ts', 'connection.ts'],
    ['message/structure.ts', 'structure.ts'],
    ['kafka/fetch-decoder.ts', 'fetch-decoder.ts'],
  ].map(([guarded, unguarded]) => [
    new URL(`../../src/${guarded}`, import.meta.url).href,
    new URL(`./unguarded/${unguarded}`, import.meta.url).href,
  ]),
)

registerHooks({
  resolve(specifier, context, next) {
    const resolved = next(specifier, context)
    const url = replaced.get(resolved.url)
    // What stands in for a module may import it.
    return url === undefined || url === context.parentURL ? resolved : { ...resolved, url }
  },
})
