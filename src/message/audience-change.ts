import { Type, type Static } from 'typebox'
import { Compile } from 'typebox/compile'
import { timestampPattern } from './timestamp.ts'

const text = (description: string) => Type.String({ minLength: 1, maxLength: 1_000, description })
/**
 * The schema of an optional text. `null` counts as absent, because some languages have no type for an absent
 * field.
 */
const optionalText = (description: string) =>
  Type.Optional(
    Type.Union([Type.String({ minLength: 1, maxLength: 1_000 }), Type.Null()], {
      description: `${description} null counts as absent.`,
    }),
  )
const timestamp = (description: string) =>
  Type.String({ pattern: timestampPattern, description: `${description} It is a text in ISO 8601.` })

const userId = text('The id of the user whose property changes. It is also the key of the record.')
const changedAt = timestamp('The time of the change. Of two changes of a property, the later one counts.')

const audience = {
  audienceId: text('The id of the audience, which never changes.'),
  audienceName: text('The name for people. If there is no key, the property has this name in snake_case.'),
  audienceKey: optionalText('The name of the property, which never changes.'),
}

const membership = Type.Object(
  {
    type: Type.Literal('membership'),
    ...audience,
    userId,
    member: Type.Boolean({
      description: 'true if the user is in the audience now, false if the user has left it.',
    }),
    changedAt,
  },
  { additionalProperties: false, description: 'A user enters or leaves an audience.' },
)

const trait = Type.Object(
  {
    type: Type.Literal('trait'),
    traitId: text('The id of the computed trait, which never changes.'),
    traitName: text('The name for people. If there is no key, the property has this name in snake_case.'),
    traitKey: optionalText('The name of the property, which never changes.'),
    userId,
    value: Type.Unknown({ description: 'The new value. Any JSON is allowed.' }),
    changedAt,
  },
  { additionalProperties: false, description: 'A computed trait of a user has a new value.' },
)

const sync = Type.Object(
  {
    type: Type.Literal('sync'),
    ...audience,
    syncId: text('The id of the sync. The parts of a partition that have the same id belong together.'),
    snapshotAt: timestamp('The time to which the list of members belongs.'),
    part: Type.Integer({ minimum: 1, description: 'The number of this part, counted from 1.' }),
    parts: Type.Integer({ minimum: 1, description: 'The number of parts that this partition gets.' }),
    userIds: Type.Array(text('The id of a user who is in the audience.'), {
      description: 'The members who belong to the partition to which this part is written.',
    }),
  },
  {
    additionalProperties: false,
    description: 'A part of a whole audience. Users who are in none of the parts have left the audience.',
  },
)

/** The schema of a change of one property of one user. The gateway accepts such changes too. */
export const propertyChange = Type.Union([membership, trait])
const change = Type.Union([membership, trait, sync])

/**
 * The schema of the value of a record of the topic `audience-changes`. The header `source-id` of the record
 * names the space.
 */
export const audienceChangeSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Audience change',
  description:
    'A change of an audience or a computed trait, on the audience-changes topic: keyed by user, but for a part of a sync, which has no key and is written to the partition of its users. A timestamp must also be a day of the calendar.',
  ...change,
}

export type PropertyChange = Static<typeof propertyChange>
/** One part of a sync, which is a whole audience sent in parts. */
export type SyncPart = Static<typeof sync>

export const propertyChangeCheck = Compile(propertyChange)
/**
 * Checks for a change whose `type` is known. Unlike the errors of `propertyChangeCheck`, their errors concern
 * only the fields of that type.
 */
export const propertyChangeChecks = { membership: Compile(membership), trait: Compile(trait) } as const
export const syncPartCheck = Compile(sync)
export const userIdCheck = Compile(userId)
