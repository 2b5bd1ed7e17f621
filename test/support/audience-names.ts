/** Of audiences and computed traits that are told of, by their names. */
export const audiences = ['Big Spenders', 'New Users'] as const
export const traits = ['LTV', 'Plan'] as const
/** Few, so that much is said of each. */
export const users = Array.from({ length: 60 }, (_, index) => `user-${index}`)

export function propertyOf(name: string): string {
  return name.toLowerCase().replace(' ', '_')
}

export function isAudience(property: string): boolean {
  return audiences.some((name) => propertyOf(name) === property)
}
