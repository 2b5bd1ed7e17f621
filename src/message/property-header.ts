/** A property of one user, and the version of its value. */
export type PropertyHeader = {
  readonly userId: string
  readonly spaceId: string
  readonly property: string
  /**
   * The version since which the property has this value. Compare such texts only for equality, not for order.
   */
  readonly since: string
}
