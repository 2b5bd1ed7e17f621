import { messageKinds } from './message-schemas.ts'

// Avro schemas of the values in the topics, for producers that use a schema registry. `schemas/*.avsc` are
// generated from them. A value that was encoded with one of these schemas is valid by the JSON Schema of its
// topic when it is decoded again. Producers may also use any other Avro schema whose values, as JSON, are
// valid.
//
// An optional field has the default null, which means "absent". No value fits two branches of a union, so a
// client in any language knows which branch to write. For example, the only branch for numbers is double, so
// whole numbers are exact only up to 2^53.

const namespace = 'sluice'

const scalar = ['null', 'boolean', 'double', 'string']
const inner = [...scalar, { type: 'array', items: scalar }, { type: 'map', values: scalar }]
/** The type of JSON values with up to three levels. Avro has no type for arbitrary JSON. */
const anyValue = [...scalar, { type: 'array', items: inner }, { type: 'map', values: inner }]
const openObject = { type: 'map', values: anyValue }

const timestamp = [{ type: 'long', logicalType: 'timestamp-millis' }, 'string']

function field(name: string, type: unknown, doc: string): object {
  return { name, type, doc }
}

function optional(name: string, type: unknown, doc: string): object {
  return { name, type: ['null', ...[type].flat()], default: null, doc }
}

/** Returns the definition of the field `type`, which names the kind of a record. */
function constant(symbol: string, name: string): object {
  return { name: 'type', type: { type: 'enum', name, symbols: [symbol] }, default: symbol }
}

function record(name: string, doc: string, fields: readonly object[]): object {
  return { type: 'record', name, namespace, doc, fields }
}

/** The schema of the value of a record of the topic `events`. */
export const eventAvro = record(
  'Event',
  'A message on the events topic, of any kind. Which fields a kind needs: schemas/event.schema.json.',
  [
    field('type', { type: 'enum', name: 'EventType', symbols: messageKinds }, 'The kind of message.'),
    optional('userId', 'string', 'Who did it. Also the partition key of the record.'),
    optional(
      'anonymousId',
      'string',
      'Who did it, while the userId is unknown; then the partition key of the record.',
    ),
    optional('messageId', 'string', 'A repeat of it within a source is dropped. At most 100 characters.'),
    optional('timestamp', timestamp, 'When it happened: milliseconds since 1970, or ISO 8601.'),
    optional('event', 'string', 'The name of the event of a track message, which needs it.'),
    optional('name', 'string', 'The name of a page or a screen.'),
    optional('category', 'string', 'The category of a page or a screen.'),
    optional('groupId', 'string', 'The group of a group message, which needs it.'),
    optional('previousId', 'string', 'The id that was used so far, of an alias message, which needs it.'),
    optional('traits', openObject, 'Traits of the user or group.'),
    optional('properties', openObject, 'Properties of the event, page or screen.'),
    optional('context', openObject, 'Device, IP address and the like.'),
    optional(
      'integrations',
      { type: 'map', values: ['boolean', { type: 'map', values: inner }] },
      'Destinations by name: false leaves one out; All: false leaves out all not named.',
    ),
  ],
)

const audience = [
  field('audienceId', 'string', 'Names the audience for ever.'),
  field(
    'audienceName',
    'string',
    'For people. The property is named after it, in snake_case, where there is no key.',
  ),
  optional('audienceKey', 'string', 'The name of the property. Never changes.'),
]
const userId = field('userId', 'string', 'Whose property changes. Also the partition key of the record.')
const changedAt = field('changedAt', timestamp, 'When it changed: milliseconds since 1970, or ISO 8601.')

/** The schema of a value of `audience-changes` which says that a user enters or leaves an audience. */
export const membershipAvro = record('AudienceMembership', 'A user enters or leaves an audience.', [
  constant('membership', 'AudienceMembershipType'),
  ...audience,
  userId,
  field('member', 'boolean', 'true: the user is in the audience now. false: no longer.'),
  changedAt,
])

/** The schema of a value of `audience-changes` which says that a user's computed trait has a new value. */
export const traitAvro = record('AudienceTrait', 'A computed trait of a user has a new value.', [
  constant('trait', 'AudienceTraitType'),
  field('traitId', 'string', 'Names the computed trait for ever.'),
  field(
    'traitName',
    'string',
    'For people. The property is named after it, in snake_case, where there is no key.',
  ),
  optional('traitKey', 'string', 'The name of the property. Never changes.'),
  userId,
  // This field has no default null, because null is also a valid value of a trait.
  field('value', anyValue, 'The new value.'),
  changedAt,
])

/** The schema of a value of `audience-changes` which is one part of a whole audience. */
export const syncAvro = record(
  'AudienceSync',
  'A part of a whole audience: who is in none of the parts has left. Its record has no key, and is written to the partition of its users.',
  [
    constant('sync', 'AudienceSyncType'),
    ...audience,
    field('syncId', 'string', 'Names the sync: its parts in a partition belong together by it.'),
    field('snapshotAt', timestamp, 'When the audience was looked at: milliseconds since 1970, or ISO 8601.'),
    field('part', 'int', 'The number of this part, from 1.'),
    field('parts', 'int', 'How many parts this partition gets.'),
    field(
      'userIds',
      { type: 'array', items: 'string' },
      'Users who belong to the partition that this part is written to.',
    ),
  ],
)

/** The schema of the value of a record of the topic `deletions`. */
export const deletionAvro = record('Deletion', 'A request to delete a user.', [
  field(
    'requestId',
    'string',
    'Names the request, 1 to 80 visible ASCII characters. The same one again is the same request.',
  ),
  field('userId', 'string', 'Whose data is to be deleted. Also the partition key of the record.'),
  field(
    'sources',
    { type: 'array', items: 'string' },
    'The affected sources: the destinations of each get a delete.',
  ),
  field('requestedAt', timestamp, 'When it was asked for: milliseconds since 1970, or ISO 8601.'),
])
