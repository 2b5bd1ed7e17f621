import type { AdminRoute, Parameter } from './admin-route.ts'
import { dryRun, keepsSecrets } from './catalog-routes.ts'
import { idempotent } from './idempotency.ts'
import { limited } from './limited.ts'

// Routes that read the history of the catalog in its topic, and undo a change.

const revision: Parameter = {
  schema: { type: 'string', pattern: '^[1-9][0-9]{0,14}$' },
  description: 'The revision of a change.',
  example: '1785317403',
}
const object: Parameter = {
  schema: { type: 'string', pattern: '^(source|destination)/[A-Za-z0-9][A-Za-z0-9._-]{0,99}$' },
  description: 'Only what concerns this object.',
  example: 'destination/crm',
}
const cursor: Parameter = {
  schema: { type: 'string', pattern: '^[0-9]{1,15}$' },
  description: 'The beginning of the page, from the answer before.',
  example: '4711',
}
const nextCursor = {
  anyOf: [{ type: 'string' }, { type: 'null' }],
  description: 'The beginning of the next page; null after the last one.',
}

const about = {
  revision: { type: 'integer', description: 'The number of the change.' },
  at: { type: 'string', format: 'date-time' },
  by: { type: 'string', description: 'The name of a token, or a user of the command line.' },
  undoes: {
    anyOf: [{ type: 'integer' }, { type: 'null' }],
    description: 'The revision that this change has undone.',
  },
  count: { type: 'integer', description: 'How many objects it has changed.' },
}
const aboutExample = {
  revision: 1_785_317_403,
  at: '2026-07-29T09:30:00.000Z',
  by: 'ann',
  undoes: null,
  count: 1,
}
const fields = {
  type: 'array',
  items: {
    title: 'FieldChange',
    type: 'object',
    required: ['field', 'before', 'after'],
    properties: {
      field: { type: 'string', description: 'The path of the field.' },
      before: { description: 'null: it was not there.' },
      after: { description: 'null: it is not there.' },
    },
  },
}
const fieldsExample = [{ field: 'state', before: 'on', after: 'paused' }]
const named = {
  object: { type: 'string', description: 'The kind and the id of the object.' },
  what: { type: 'string', enum: ['created', 'changed', 'removed'] },
}

function listOfObjects(properties: object): object {
  return { type: 'array', items: { type: 'object', required: Object.keys(properties), properties } }
}

const masked =
  'Secrets and the values of headers are shown as `${kept:…}`, and the paths of URLs only to tokens with the right `admin`.'

const prune = {
  type: 'string',
  minLength: 3,
  maxLength: 200,
  description: 'A label, such as `tenant=acme`: objects that have it and are not in the body are removed.',
}

const allowEmpty = {
  type: 'boolean',
  description:
    '`true`: prunes although nothing in the body has the label, so that all objects with it are removed. Otherwise, this is refused.',
}

const list: AdminRoute = {
  call: 'list_catalog_changes',
  method: 'GET',
  path: '/v1/catalog/history',
  right: 'read',
  scope: 'installation',
  summary: 'List the changes of the catalog, newest first',
  description: `A page may have fewer changes than \`limit\`, although there are more: repeat the request with its \`cursor\` until that is null. With \`object\`, each change has the fields of this object that differ. ${masked}`,
  query: { ...limited, object, cursor },
  status: 200,
  answer: {
    schema: {
      type: 'object',
      required: ['changes', 'cursor'],
      properties: {
        changes: {
          type: 'array',
          items: {
            title: 'CatalogChange',
            type: 'object',
            required: [...Object.keys(about), 'isWhole', 'objects', 'fields'],
            properties: {
              ...about,
              isWhole: { type: 'boolean', description: 'false: parts of it are too old, and were deleted.' },
              objects: { ...listOfObjects(named), description: 'The first 100 of them.' },
              fields: {
                anyOf: [fields, { type: 'null' }],
                description: 'Those of the object that was asked for.',
              },
            },
          },
        },
        cursor: nextCursor,
      },
    },
    example: {
      changes: [
        {
          ...aboutExample,
          isWhole: true,
          objects: [{ object: 'destination/crm', what: 'changed' }],
          fields: null,
        },
      ],
      cursor: '4711',
    },
  },
  problems: ['conflict'],
}

const show: AdminRoute = {
  call: 'show_catalog_change',
  method: 'GET',
  path: '/v1/catalog/history/{revision}',
  right: 'read',
  scope: 'installation',
  summary: 'Show a change of the catalog, with the fields that differ',
  description: `A page has the first \`limit\` objects. ${masked}`,
  params: { revision },
  query: { ...limited, object, cursor },
  status: 200,
  answer: {
    schema: {
      type: 'object',
      required: [...Object.keys(about), 'objects', 'cursor'],
      properties: { ...about, objects: listOfObjects({ ...named, fields }), cursor: nextCursor },
    },
    example: {
      ...aboutExample,
      objects: [{ object: 'destination/crm', what: 'changed', fields: fieldsExample }],
      cursor: null,
    },
  },
  problems: ['not_found', 'conflict'],
}

const undo: AdminRoute = {
  call: 'undo_catalog_change',
  method: 'POST',
  path: '/v1/catalog/history/{revision}/undo',
  right: 'admin',
  scope: 'installation',
  summary: 'Undo a change of the catalog',
  description:
    'Makes the opposite of the change, in one change. Secrets come back too. If one of its objects was changed again since, the answer is 409, and names the change that has to be undone first. An undo can be undone.',
  params: { revision },
  query: { dryRun },
  headers: idempotent,
  status: 200,
  answer: {
    schema: {
      type: 'object',
      required: ['revision', 'undoes', 'count', 'objects'],
      properties: {
        revision: { type: 'integer', description: 'The number of the last change of the catalog.' },
        undoes: { type: 'integer' },
        count: about.count,
        objects: {
          ...listOfObjects({ ...named, fields }),
          description: 'The first 100 of them, with the fields that differ by the undo.',
        },
      },
    },
    example: {
      revision: 1_785_317_404,
      undoes: 1_785_317_403,
      count: 1,
      objects: [
        {
          object: 'destination/crm',
          what: 'changed',
          fields: [{ field: 'state', before: 'paused', after: 'on' }],
        },
      ],
    },
  },
  problems: ['not_found', 'conflict', 'outdated', 'other_request', 'faulty'],
}

const apply: AdminRoute = {
  call: 'apply_catalog',
  method: 'POST',
  path: '/v1/catalog/apply',
  right: 'admin',
  scope: 'installation',
  summary: 'Make many sources and destinations as they are given, in one change',
  description: `As \`sluice apply -f\` does: objects that are not named stay as they are. So do \`state\`, secrets and keys of an object (\`sharedSecret\`, \`signing.ed25519\`, \`writeKeys\`, \`serverKeys\`) that the body does not have; null removes them. The body may have 8 MiB and 5,000 objects. All of it is made, or nothing. Ask with \`dryRun\` first. An object that somebody changes at the same moment refuses the change. ${keepsSecrets}`,
  query: { dryRun },
  headers: idempotent,
  maxBodyBytes: 8 * 1_024 ** 2,
  body: {
    schema: {
      type: 'object',
      additionalProperties: false,
      properties: {
        sources: { type: 'array', items: { type: 'object' }, maxItems: 5_000 },
        destinations: { type: 'array', items: { type: 'object' }, maxItems: 5_000 },
        prune,
        allowEmpty,
      },
    },
    documented: {
      type: 'object',
      additionalProperties: false,
      properties: {
        sources: { type: 'array', items: { $ref: '#/components/schemas/Source' }, maxItems: 5_000 },
        destinations: { type: 'array', items: { $ref: '#/components/schemas/Destination' }, maxItems: 5_000 },
        prune,
        allowEmpty,
      },
    },
    example: {
      destinations: [{ id: 'crm', sources: ['shop'], hooks: [{ url: 'https://crm.example.com/hook' }] }],
    },
  },
  status: 200,
  answer: {
    schema: {
      type: 'object',
      required: ['isPreview', 'revision', 'count', 'objects'],
      properties: {
        isPreview: { type: 'boolean', description: 'It is true if nothing was changed.' },
        revision: { type: 'integer', description: 'The number of the last change of the catalog.' },
        count: { type: 'integer', description: 'How many objects are made, changed or removed.' },
        objects: listOfObjects(named),
      },
    },
    example: {
      isPreview: false,
      revision: 1_785_317_405,
      count: 1,
      objects: [{ object: 'destination/crm', what: 'created' }],
    },
  },
  problems: ['not_found', 'conflict', 'outdated', 'other_request', 'faulty'],
}

export const catalogHistoryRoutes: readonly AdminRoute[] = [list, show, undo, apply]
