/** The names of the audiences, and of the computed traits, whose changes the tests send. */
export const audiences = ['Big Spenders', 'New Users'] as const
export const traits = ['LTV', 'Plan'] as const
/** The ids of the users. There are only 60, so that each user gets many changes. */
export const users = Array.from({ length: 60 }, (_, index) => `user-${index}`)

export function propertyOf(name: string): string {
  return name.toLowerCase().replace(' ', '_')
}

export function isAudience(property: string): boolean {
  return audiences.some((name) => propertyOf(name) === property)
}
