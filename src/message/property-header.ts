/** A property of one user, and the version of its value. */
export type PropertyHeader = {
  readonly userId: string
  readonly spaceId: string
  readonly property: string
  /** The version at which the value came about. It is compared as text for equality only, never ordered. */
  readonly since: string
}
