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
      description: `${description} null is absent.`,
    }),
  )
const timestamp = (description: string) =>
  Type.String({ pattern: timestampPattern, description: `${description} ISO 8601.` })

const userId = text('Whose property changes. Also the partition key of the record.')
const changedAt = timestamp('When it changed: of two changes of a property the later one holds.')

const audience = {
  audienceId: text('Names the audience for ever.'),
  audienceName: text('For people. The property is named after it, in snake_case, where there is no key.'),
  audienceKey: optionalText('The name of the property. Never changes.'),
}

const membership = Type.Object(
  {
    type: Type.Literal('membership'),
    ...audience,
    userId,
    member: Type.Boolean({ description: 'true: the user is in the audience now. false: no longer.' }),
    changedAt,
  },
  { additionalProperties: false, description: 'A user enters or leaves an audience.' },
)

const trait = Type.Object(
  {
    type: Type.Literal('trait'),
    traitId: text('Names the computed trait for ever.'),
    traitName: text('For people. The property is named after it, in snake_case, where there is no key.'),
    traitKey: optionalText('The name of the property. Never changes.'),
    userId,
    value: Type.Unknown({ description: 'The new value, any JSON.' }),
    changedAt,
  },
  { additionalProperties: false, description: 'A computed trait of a user has a new value.' },
)

const sync = Type.Object(
  {
    type: Type.Literal('sync'),
    ...audience,
    syncId: text('Names the sync: its parts in a partition belong together by it.'),
    snapshotAt: timestamp('When the audience was looked at.'),
    part: Type.Integer({ minimum: 1, description: 'The number of this part, from 1.' }),
    parts: Type.Integer({ minimum: 1, description: 'How many parts this partition gets.' }),
    userIds: Type.Array(text('A user who is in the audience.'), {
      description: 'Users who belong to the partition that this part is written to.',
    }),
  },
  {
    additionalProperties: false,
    description: 'A part of a whole audience: who is in none of the parts has left.',
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
