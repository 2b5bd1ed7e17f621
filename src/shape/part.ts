import type { Steps } from './fault.ts'

/** Where a part of a mapping is. */
export type Place = readonly (string | number)[]

/** A part of a mapping that was read: makes a value of a message. `undefined`: there is none. */
export type Make = (payload: unknown, steps: Steps) => unknown

/** The reader of the parts of one mapping. */
export type Parts = {
  /** Reads a part. Throws a `MappingFault` if it can't be used. */
  part(part: unknown, place: Place): Make
}

/** Sets a member, also one with the name `__proto__`, which an assignment would take for the prototype. */
export function put(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') object[name] = value
  else Object.defineProperty(object, name, { value, enumerable: true, writable: true, configurable: true })
}
