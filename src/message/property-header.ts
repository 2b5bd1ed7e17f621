/** One property of one user, and the version of its value. */
export type PropertyHeader = {
  readonly userId: string
  readonly spaceId: string
  readonly property: string
  /** The version that the value has had since it came about; told apart, and not ordered, by its text. */
  readonly since: string
}
