import type { AdminRoute } from './admin-route.ts'
import { audienceRoute } from './audience-routes.ts'
import { auditRoute } from './audit-route.ts'
import { bulkRoute } from './bulk-routes.ts'
import { catalogHistoryRoutes } from './catalog-history-routes.ts'
import { catalogRoutes } from './catalog-routes.ts'
import { contentRoutes } from './content-routes.ts'
import { destinationRoutes } from './destination-routes.ts'
import { linkRoutes } from './link-routes.ts'
import { previewRoutes } from './preview-routes.ts'
import { liveRoute } from './live-routes.ts'
import { logRoutes } from './log-routes.ts'
import { replayRoutes } from './replay-routes.ts'
import { sessionRoutes } from './session-routes.ts'
import { statusRoutes } from './status-routes.ts'
import { scopeSchema, seesContent, tokenRoutes } from './token-routes.ts'
import { rotateRoutes } from './rotate-routes.ts'

/** The table of all calls that `sluice admin` answers. */
export const adminRoutes: readonly AdminRoute[] = [
  {
    call: 'health',
    method: 'GET',
    path: '/v1/health',
    right: 'read',
    scope: 'token',
    summary: 'What answers, and who asks',
    description:
      'An orchestrator finds its probes at http.port (/livez and /readyz), and needs no token there.',
    status: 200,
    answer: {
      schema: {
        type: 'object',
        required: ['status', 'version', 'commit', 'token'],
        properties: {
          status: { const: 'ok' },
          version: { type: 'string' },
          commit: { type: 'string' },
          token: {
            type: 'object',
            required: ['name', 'right', 'content', 'scope', 'expiresAt'],
            properties: {
              name: { type: 'string' },
              right: { enum: ['read', 'operate', 'admin'] },
              content: seesContent,
              scope: scopeSchema,
              expiresAt: { type: ['string', 'null'], format: 'date-time' },
            },
          },
        },
      },
      example: {
        status: 'ok',
        version: '0.1.0',
        commit: '2fb1096',
        token: { name: 'ann', right: 'operate', content: true, scope: 'all', expiresAt: null },
      },
    },
    problems: [],
  },
  ...replayRoutes,
  ...logRoutes,
  ...contentRoutes,
  ...previewRoutes,
  ...statusRoutes,
  ...destinationRoutes,
  bulkRoute,
  audienceRoute,
  ...catalogRoutes,
  ...tokenRoutes,
  ...sessionRoutes,
  ...linkRoutes,
  liveRoute,
  ...rotateRoutes,
  ...catalogHistoryRoutes,
  auditRoute,
]
