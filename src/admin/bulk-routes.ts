import type { AdminRoute } from './admin-route.ts'
import { idempotent } from './idempotency.ts'

// The route that does the same to many destinations.

const id = { type: 'string', minLength: 1, maxLength: 100 }
const ids = { type: 'array', items: { type: 'string' } }

const skippedProperties = {
  destination: { type: 'string' },
  why: { type: 'string', description: 'The reason, for people.' },
}
const doneProperties = {
  do: { type: 'string' },
  isPreview: { type: 'boolean', description: 'It is true if nothing was changed.' },
  selected: { type: 'integer', minimum: 0, description: 'How many destinations are selected.' },
  destinations: { ...ids, description: 'Those to which it is done.' },
  skipped: {
    type: 'array',
    description: 'Those to which it is not done.',
    items: { type: 'object', required: Object.keys(skippedProperties), properties: skippedProperties },
  },
  unknown: { ...ids, description: 'Those of `selection.destinations` that do not exist.' },
  revision: {
    type: ['integer', 'null'],
    description:
      'The number of the change of the catalog, by which it can be undone. It is null if there was none.',
  },
}

export const bulkRoute: AdminRoute = {
  call: 'change_destinations',
  method: 'POST',
  path: '/v1/destinations/bulk',
  right: 'operate',
  scope: 'within',
  summary: 'Do the same to many destinations',
  description:
    'Pauses, resumes or labels all selected destinations in one change of the catalog, of 5,000 destinations at most, or tries now what waits for 200 of them at most. `pause`, `resume` and `label` need the right `admin`, and the catalog in its topic. A destination must meet each condition of the selection. Ask with `dryRun` first: it says to which it would be done. `resume` is about destinations that are paused in the catalog. What Sluice has paused is resumed one by one. A repetition with the same `Idempotency-Key` names only what the first request changed, and nothing that it skipped. `retry-now` takes no key, because a repetition does no harm.',
  headers: idempotent,
  body: {
    schema: {
      title: 'BulkOrder',
      type: 'object',
      additionalProperties: false,
      required: ['selection', 'do'],
      properties: {
        selection: {
          type: 'object',
          additionalProperties: false,
          minProperties: 1,
          properties: {
            label: { type: 'string', minLength: 3, maxLength: 200, description: 'Such as `tenant=acme`.' },
            state: {
              type: 'string',
              minLength: 1,
              maxLength: 20,
              description: 'A state or a condition, as in the list of destinations.',
            },
            search: {
              type: 'string',
              minLength: 1,
              maxLength: 200,
              description: 'A text that the id, the name or the host has, in upper or lower case.',
            },
            source: id,
            destinations: { type: 'array', items: id, minItems: 1, maxItems: 1_000 },
          },
        },
        do: { enum: ['pause', 'resume', 'retry-now', 'label'] },
        labels: {
          type: 'object',
          maxProperties: 20,
          additionalProperties: { type: ['string', 'null'], maxLength: 100 },
          description: 'With `label`: the labels that are set, and those that are removed (null).',
        },
        dryRun: { type: 'boolean', description: 'If it is true, nothing is changed.' },
      },
    },
    example: { selection: { label: 'tenant=acme' }, do: 'retry-now', dryRun: true },
  },
  status: 200,
  answer: {
    schema: {
      title: 'BulkDone',
      type: 'object',
      required: Object.keys(doneProperties),
      properties: doneProperties,
    },
    example: {
      do: 'retry-now',
      isPreview: true,
      selected: 2,
      destinations: ['acme.crm'],
      skipped: [
        {
          destination: 'acme.erp',
          why: 'The destination "acme.erp" is paused in the catalog: what waits is tried when its state becomes on.',
        },
      ],
      unknown: [],
      revision: null,
    },
  },
  problems: ['conflict', 'outdated', 'other_request', 'faulty', 'not_found'],
}
