import type { Version } from './version.ts'

/** The key of the state of one property of one user in one space. */
export type PropertyStateKey = {
  readonly kind: 'property'
  readonly userId: string
  readonly spaceId: string
  readonly property: string
}

/** The value of a property, and the audience or trait to which the property belongs. */
export type PropertyState = {
  readonly kind: 'audience' | 'trait'
  readonly id: string
  readonly name: string
  /** The value as JSON text, in the spelling of `JSON.stringify`. */
  readonly value: string
  readonly version: Version
  /** The version with which this value was sent to receivers. It is never higher than `version`. */
  readonly since: Version
}
