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
  'A message of any kind on the topic events. schemas/event.schema.json says which fields each kind needs.',
  [
    field('type', { type: 'enum', name: 'EventType', symbols: messageKinds }, 'The kind of message.'),
    optional('userId', 'string', 'The id of the user who did this. It is also the key of the record.'),
    optional(
      'anonymousId',
      'string',
      'An id for the user while the userId is unknown. It is then the key of the record.',
    ),
    optional(
      'messageId',
      'string',
      'The id of the message, at most 100 characters. If a source sends an id again, Sluice drops the repeat.',
    ),
    optional(
      'timestamp',
      timestamp,
      'The time when this happened: milliseconds since 1970, or a text in ISO 8601.',
    ),
    optional('event', 'string', 'The name of the event. A track message needs it.'),
    optional('name', 'string', 'The name of a page or a screen.'),
    optional('category', 'string', 'The category of a page or a screen.'),
    optional('groupId', 'string', 'The id of the group. A group message needs it.'),
    optional('previousId', 'string', 'The id that the user had so far. An alias message needs it.'),
    optional('traits', openObject, 'The traits of the user or the group.'),
    optional('properties', openObject, 'The properties of the event, the page or the screen.'),
    optional('context', openObject, 'Facts about the device, the IP address and the like.'),
    optional(
      'integrations',
      { type: 'map', values: ['boolean', { type: 'map', values: inner }] },
      'Names destinations. false leaves out a destination; All: false leaves out all destinations that are not named.',
    ),
  ],
)

const audience = [
  field('audienceId', 'string', 'The id of the audience, which never changes.'),
  field(
    'audienceName',
    'string',
    'The name for people. If there is no key, the property has this name in snake_case.',
  ),
  optional('audienceKey', 'string', 'The name of the property, which never changes.'),
]
const userId = field(
  'userId',
  'string',
  'The id of the user whose property changes. It is also the key of the record.',
)
const changedAt = field(
  'changedAt',
  timestamp,
  'The time of the change: milliseconds since 1970, or a text in ISO 8601.',
)

/** The schema of a value of `audience-changes` which says that a user enters or leaves an audience. */
export const membershipAvro = record('AudienceMembership', 'A user enters or leaves an audience.', [
  constant('membership', 'AudienceMembershipType'),
  ...audience,
  userId,
  field('member', 'boolean', 'true if the user is in the audience now, false if the user has left it.'),
  changedAt,
])

/** The schema of a value of `audience-changes` which says that a user's computed trait has a new value. */
export const traitAvro = record('AudienceTrait', 'A computed trait of a user has a new value.', [
  constant('trait', 'AudienceTraitType'),
  field('traitId', 'string', 'The id of the computed trait, which never changes.'),
  field(
    'traitName',
    'string',
    'The name for people. If there is no key, the property has this name in snake_case.',
  ),
  optional('traitKey', 'string', 'The name of the property, which never changes.'),
  userId,
  // This field has no default null, because null is also a valid value of a trait.
  field('value', anyValue, 'The new value.'),
  changedAt,
])

/** The schema of a value of `audience-changes` which is one part of a whole audience. */
export const syncAvro = record(
  'AudienceSync',
  'A part of a whole audience. Users who are in none of the parts have left the audience. The record has no key, and is written to the partition of its users.',
  [
    constant('sync', 'AudienceSyncType'),
    ...audience,
    field(
      'syncId',
      'string',
      'The id of the sync. The parts of a partition that have the same id belong together.',
    ),
    field(
      'snapshotAt',
      timestamp,
      'The time to which the list of members belongs: milliseconds since 1970, or a text in ISO 8601.',
    ),
    field('part', 'int', 'The number of this part, counted from 1.'),
    field('parts', 'int', 'The number of parts that this partition gets.'),
    field(
      'userIds',
      { type: 'array', items: 'string' },
      'The members who belong to the partition to which this part is written.',
    ),
  ],
)

/** The schema of the value of a record of the topic `deletions`. */
export const deletionAvro = record('Deletion', 'A request to delete a user.', [
  field(
    'requestId',
    'string',
    'The id of the request: 1 to 80 visible ASCII characters. A request with the same id is the same request.',
  ),
  field(
    'userId',
    'string',
    'The id of the user whose data is to be deleted. It is also the key of the record.',
  ),
  field(
    'sources',
    { type: 'array', items: 'string' },
    'The affected sources. The destinations of each of them get a delete.',
  ),
  field('requestedAt', timestamp, 'The time of the request: milliseconds since 1970, or a text in ISO 8601.'),
])
