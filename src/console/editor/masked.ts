import type { Destination, Hook } from '../data/types.ts'
import { objectAt } from './draft-text.ts'
import { keptSince } from './kept.ts'

const instead = '(as typed)'

/** Returns a destination in which the secrets that somebody has typed can't be read, for a look at it. */
export function maskedOf(destination: Destination): Destination {
  return {
    ...masked(destination, ['sharedSecret', 'nextSharedSecret']),
    hooks: destination.hooks.map(maskedHook),
  }
}

function maskedHook(hook: Hook): Hook {
  const login = masked(objectAt(hook, 'login'), ['username', 'password', 'clientSecret'])
  const tls = masked(objectAt(hook, 'tls'), ['certificate', 'key', 'ca'])
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only texts are others
  return {
    ...hook,
    ...(hook.login === undefined ? {} : { login }),
    ...(hook.tls === undefined ? {} : { tls }),
  } as Hook
}

/** Replaces the texts with these names, except those that only stand for what is kept. */
function masked<T extends object>(value: T, names: readonly string[]): T {
  const found = Object.entries(value).map(([name, text]: [string, unknown]) => [
    name,
    names.includes(name) && typeof text === 'string' && keptSince(text) === undefined ? instead : text,
  ])
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only texts are others
  return Object.fromEntries(found) as T
}
