/** A property of one user, and the version of its value. */
export type PropertyHeader = {
  readonly userId: string
  readonly spaceId: string
  readonly property: string
  /**
   * The version at which the value came about. As a text, it may only be compared for equality, not for
   * order.
   */
  readonly since: string
}
