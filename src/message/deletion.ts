import { Type, type Static } from 'typebox'
import { Compile } from 'typebox/compile'
import { timestampPattern } from './timestamp.ts'

const text = (description: string) => Type.String({ minLength: 1, maxLength: 1_000, description })

const request = Type.Object(
  {
    requestId: Type.String({
      pattern: '^[\\x21-\\x7e]{1,80}$',
      description:
        'The id of the request: 1 to 80 visible ASCII characters. A request with the id of the last request for the same user and source is the same request.',
    }),
    userId: text('The id of the user whose data is to be deleted. It is also the key of the record.'),
    sources: Type.Array(text('The id of a source.'), {
      minItems: 1,
      maxItems: 1_000,
      uniqueItems: true,
      description:
        'The affected sources. The destinations of each of them get a delete, which has an id of its own.',
    }),
    requestedAt: Type.String({
      pattern: timestampPattern,
      description:
        'The time of the request, a text in ISO 8601. Sluice does not retry what these sources sent about the user before this time, and does not send their older audience values.',
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
