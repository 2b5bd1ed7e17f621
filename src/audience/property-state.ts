import type { Version } from './version.ts'

/** Names one property of one user in one space. */
export type PropertyStateKey = {
  readonly kind: 'property'
  readonly userId: string
  readonly spaceId: string
  readonly property: string
}

/** The value of a property, and the audience or trait that it belongs to. */
export type PropertyState = {
  readonly kind: 'audience' | 'trait'
  readonly id: string
  readonly name: string
  /** The value as JSON text, spelled as by `JSON.stringify`. */
  readonly value: string
  readonly version: Version
  /** The version of the record that carries this value to the receivers. Never above `version`. */
  readonly since: Version
}
