import { Type, type Static } from 'typebox'
import { Compile } from 'typebox/compile'
import { timestampPattern } from './timestamp.ts'

const text = (description: string) => Type.String({ minLength: 1, maxLength: 1_000, description })

const request = Type.Object(
  {
    requestId: Type.String({
      pattern: '^[\\x21-\\x7e]{1,80}$',
      description:
        'Names the request, 1 to 80 visible ASCII characters. The id of the last request of the same user and source again is the same request.',
    }),
    userId: text('Whose data is to be deleted. Also the partition key of the record.'),
    sources: Type.Array(text('The id of a source.'), {
      minItems: 1,
      maxItems: 1_000,
      uniqueItems: true,
      description: 'The affected sources: the destinations of each get a delete, with an id of its own.',
    }),
    requestedAt: Type.String({
      pattern: timestampPattern,
      description:
        'When it was asked for, ISO 8601. What these sources sent of the user before isn’t tried again, and their older audience values aren’t sent.',
    }),
  },
  { additionalProperties: false },
)

/** The schema of a deletion request, which is the value of a record of the topic `deletions`. */
export const deletionSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Deletion',
  description:
    'A request to delete a user, on the deletions topic, keyed by user. A timestamp must also be a day of the calendar.',
  ...request,
}

export type Deletion = Static<typeof request>

export const deletionCheck = Compile(request)
