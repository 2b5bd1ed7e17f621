/** A property of one user, and the version of its value. */
export type PropertyHeader = {
  readonly userId: string
  readonly spaceId: string
  readonly property: string
  /**
   * The version since which the property has this value. Such texts may be compared for equality, but not for
   * order.
   */
  readonly since: string
}
