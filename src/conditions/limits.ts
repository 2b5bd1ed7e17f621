/** Limits on a condition, so that none costs more than a known number of steps for a message. */
export const conditionLimits = {
  /** The most characters of its text. */
  characters: 2_000,
  /** The most nodes of its syntax tree: names, values, fields, operators and calls. */
  nodes: 200,
  /** The most levels of its syntax tree. */
  depth: 50,
} as const

/**
 * The fields of a message that a condition may name, each with its type in CEL. `message` is the whole
 * message, for all other fields.
 */
export const conditionFields: ReadonlyMap<string, 'string' | 'map'> = new Map([
  ['type', 'string'],
  ['event', 'string'],
  ['name', 'string'],
  ['userId', 'string'],
  ['anonymousId', 'string'],
  ['groupId', 'string'],
  ['previousId', 'string'],
  ['messageId', 'string'],
  ['timestamp', 'string'],
  ['receivedAt', 'string'],
  ['sentAt', 'string'],
  ['properties', 'map'],
  ['traits', 'map'],
  ['context', 'map'],
  ['integrations', 'map'],
  ['message', 'map'],
])

/**
 * The name by which the environment knows the field `type`. CEL has a type of the name `type` already, which
 * no condition needs.
 */
export const typeName = '$type'
