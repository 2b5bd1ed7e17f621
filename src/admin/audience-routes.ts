import type { AdminRoute } from './admin-route.ts'

// The route that says what audiences have, and who gets them. It answers from memory.

const time = { type: 'string', format: 'date-time' }
const timeOrNull = { type: ['string', 'null'], format: 'date-time' }
const count = { type: 'integer', minimum: 0 }
const countOrNull = { type: ['integer', 'null'], minimum: 0 }

function objectOf(properties: Readonly<Record<string, object>>): object {
  return { type: 'object', required: Object.keys(properties), properties }
}

const audienceProperties = {
  key: { type: 'string', description: 'The key of the audience or of the computed trait.' },
  values: { ...count, description: 'How many users are in the audience, or have a value of the trait.' },
}
const destinationProperties = {
  destination: { type: 'string' },
  name: { type: 'string' },
  state: {
    enum: ['complete', 'first_sync', 'waiting', 'needs_backfill', 'unknown'],
    description:
      '`first_sync`: it was connected later, and gets the present values. `waiting`: its first sync waits until the destination and the source are on. `needs_backfill`: it lacks values: `sluice audience backfill`. `unknown`: not all workers tell.',
  },
  left: {
    ...count,
    description: 'How many values are still to be queued for it. While they are counted, it grows.',
  },
}
const spaceProperties = {
  id: { type: 'string', description: 'The id of the source.' },
  name: { type: 'string' },
  isOn: { type: 'boolean' },
  values: {
    ...countOrNull,
    description: 'How many values there are. It is null until workers have counted all units.',
  },
  countedAt: {
    ...timeOrNull,
    description: 'When the oldest part of the counts was counted. Workers count slowly, again and again.',
  },
  audiences: {
    type: 'array',
    description: 'Those with most values come first. Counts are those of the units that were counted.',
    items: { title: 'AudienceCount', ...objectOf(audienceProperties) },
  },
  otherValues: { ...count, description: 'How many values are in others, which are too many to be told.' },
  destinations: {
    type: 'array',
    description: 'At most 200 of its destinations. Those that lack something come first.',
    items: { title: 'AudienceDestination', ...objectOf(destinationProperties) },
  },
  connected: { ...count, description: 'How many destinations are connected to it.' },
}

export const audienceRoute: AdminRoute = {
  call: 'list_audiences',
  method: 'GET',
  path: '/v1/audiences',
  right: 'read',
  scope: 'within',
  summary: 'What audiences have, and which destinations lack something',
  description:
    'Lists the sources of kind `audiences` (spaces), with counts of their values, the first syncs that run, and the destinations that need a backfill, as far as workers tell. The server answers from memory, also while Kafka is away.',
  status: 200,
  answer: {
    schema: objectOf({
      asOf: { ...time, description: 'When this was read from Kafka.' },
      isComplete: { type: 'boolean', description: 'It is false if not all workers tell.' },
      spaces: { type: 'array', items: { title: 'AudienceSpace', ...objectOf(spaceProperties) } },
      untold: {
        ...count,
        description: 'How many first syncs and destinations are left out, because they are too many.',
      },
    }),
    example: {
      asOf: '2026-07-29T09:30:02.000Z',
      isComplete: true,
      spaces: [
        {
          id: 'people',
          name: 'People',
          isOn: true,
          values: 184_002,
          countedAt: '2026-07-29T09:21:40.000Z',
          audiences: [
            { key: 'big_spenders', values: 12_004 },
            { key: 'lifetime_value', values: 171_998 },
          ],
          otherValues: 0,
          destinations: [
            { destination: 'erp', name: 'ERP', state: 'needs_backfill', left: 0 },
            { destination: 'crm', name: 'CRM', state: 'first_sync', left: 4_200 },
          ],
          connected: 2,
        },
      ],
      untold: 0,
    },
  },
  problems: [],
}
