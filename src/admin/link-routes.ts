import type { AdminRoute } from './admin-route.ts'
import { labelKeyPattern, labelValuePattern } from '../catalog/labels.ts'
import { grants, namePattern } from './tokens.ts'

// Routes that make, list and revoke links, by which customers see their own in the console.

const time = { type: 'string', format: 'date-time' }
const listed = {
  id: { type: 'string' },
  name: { type: 'string', description: 'Who it is for: the audit trail has it.' },
  label: { type: 'string', description: 'What it shows: the destinations and sources with this label.' },
  rights: { type: 'array', items: { enum: [...grants] } },
  expiresAt: time,
  createdBy: { type: 'string' },
  createdAt: time,
}
const example = {
  id: 'link.5f0c2a9be14d7c3368a1b2f4',
  name: 'initech',
  label: 'tenant=initech',
  rights: ['see', 'replay'],
  expiresAt: '2026-08-05T09:30:00.000Z',
  createdBy: 'ann',
  createdAt: '2026-07-29T09:30:00.000Z',
}

export const linkRoutes: readonly AdminRoute[] = [
  {
    call: 'list_links',
    method: 'GET',
    path: '/v1/links',
    right: 'operate',
    scope: 'within',
    summary: 'List the links of customers',
    description: 'Those that have not ended, the newest first. Nothing has the links themselves.',
    status: 200,
    answer: {
      schema: {
        type: 'object',
        required: ['links'],
        properties: {
          links: {
            type: 'array',
            items: { title: 'Link', type: 'object', required: Object.keys(listed), properties: listed },
          },
        },
      },
      example: { links: [example] },
    },
    problems: [],
  },
  {
    call: 'create_link',
    method: 'POST',
    path: '/v1/links',
    right: 'operate',
    scope: 'within',
    summary: 'Make a link for a customer',
    description:
      'Whoever has the link signs in to the console, sees what has the label, and does what `rights` name, until it ends or is revoked. Without the right `admin`, a token needs a scope with this label, and gives no more than it may do itself.',
    body: {
      schema: {
        type: 'object',
        additionalProperties: false,
        required: ['name', 'label', 'rights'],
        properties: {
          name: {
            type: 'string',
            pattern: namePattern,
            description: 'Who it is for: the audit trail has it.',
          },
          label: {
            type: 'string',
            pattern: `^${labelKeyPattern.slice(1, -1)}=${labelValuePattern.slice(1, -1)}$`,
          },
          rights: {
            type: 'array',
            minItems: 1,
            uniqueItems: true,
            items: { enum: [...grants] },
            description:
              '`see`: destinations, their health, the delivery log. `answers`: what endpoints have answered to failed requests, for which the token needs content itself. `replay`: send again, try now. `test`: send test messages. `edit_url`: change URLs, and nothing else. `rotate`: replace secrets.',
          },
          expiresAt: {
            type: 'string',
            minLength: 10,
            maxLength: 40,
            description: 'When it ends, in ISO 8601: in at most 90 days. Absent: in 7 days.',
          },
        },
      },
      example: { name: 'initech', label: 'tenant=initech', rights: ['see', 'replay'] },
    },
    status: 201,
    answer: {
      schema: {
        type: 'object',
        required: ['link', ...Object.keys(listed)],
        properties: {
          link: {
            type: 'string',
            description:
              'The link, which is shown this once: a URL if `admin.publicUrl` is set, or else its path.',
          },
          ...listed,
        },
      },
      example: {
        link: 'https://ops.example.com/console/#link=sluice_link_2yPq3v3m0l8c1cWm5kQ9Yd4i1s7bJx6rT0nUaEhGzVo',
        ...example,
      },
    },
    problems: ['conflict'],
  },
  {
    call: 'remove_link',
    method: 'DELETE',
    path: '/v1/links/{link}',
    right: 'operate',
    scope: 'within',
    summary: 'Revoke a link',
    description:
      'All sessions that it has begun end too: on the process that answers at once, and on the others within a second.',
    params: {
      link: {
        schema: { type: 'string', minLength: 1, maxLength: 100 },
        description: 'The id of a link.',
        example: example.id,
      },
    },
    status: 200,
    answer: {
      schema: {
        type: 'object',
        required: ['id', 'what'],
        properties: { id: { type: 'string' }, what: { const: 'removed' } },
      },
      example: { id: example.id, what: 'removed' },
    },
    problems: ['not_found', 'conflict'],
  },
]
