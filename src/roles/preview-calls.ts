import { AtOnce } from '../admin/at-once.ts'
import { type AdminAnswer, done, missing, noToken, problem } from '../admin/problem.ts'
import { holdsSource } from '../admin/scope.ts'
import type { AdminCalls } from '../admin/server.ts'
import { shareOf } from '../admin/tokens.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { listOf, recordOf } from '../catalog/plain-data.ts'
import type { Config } from '../config/schema.ts'
import { recentEvents } from './content/recent-events.ts'
import type { ReplayDesk } from './operations/replay-desk.ts'
import { checkRule, previewOf, type Rule, type Tried } from './preview/preview.ts'
import { asked, type Log, notTold } from './replay-calls.ts'

/** How many previews may run at the same time. Some read much of Kafka. */
const previewsAtOnce = { most: 4, mostOfToken: 2, what: 'previews' }
const defaultLimit = 20

export type PreviewCallsOptions = {
  readonly config: Config
  readonly log: Log
  readonly desk: Pick<ReplayDesk, 'tell'>
  readonly catalog: () => Catalog
}

/**
 * Creates the handlers of the calls that try a rule: on messages of the request, or on the last events of a
 * source. The latter are content, so that call is written into the audit trail first.
 */
export function previewCalls({
  config,
  log,
  desk,
  catalog,
}: PreviewCallsOptions): Pick<AdminCalls, 'preview' | 'preview_source'> {
  const atOnce = new AtOnce(previewsAtOnce)

  async function ofSource(id: string, body: unknown): Promise<AdminAnswer> {
    const limit = Number(recordOf(body)['limit'] ?? defaultLimit)
    return answered(body, await recentEvents(config, log, id, limit), config)
  }

  return {
    preview: async ({ body }) => {
      const atMs = Date.now()
      const messages = listOf(recordOf(body)['messages'])
      return answered(
        body,
        messages.map((message) => ({ value: Buffer.from(JSON.stringify(message)), atMs })),
        config,
      )
    },
    async preview_source({ params: { source: id = '' }, body, token, isInForce }) {
      const source = catalog().sources.get(id)
      if (source === undefined || !holdsSource(token.scope, source)) return missing('source', id)
      if (source.kind !== 'events')
        return problem('conflict', 'This source has audiences. Only sources of events have events.')
      return atOnce.run(shareOf(token), async () => {
        if (!isInForce()) return noToken
        const detail = `a preview on the last events of source ${id}`
        const deed = { action: 'content_read', by: token.name, detail } as const
        const told = await asked(log, desk.tell(deed), () => done({}), notTold)
        return told.isProblem ? told : asked(log, ofSource(id, body), (answer) => answer)
      })
    },
  }
}

function answered(body: unknown, messages: readonly Tried[], { message: limits }: Config): AdminAnswer {
  const rule = checkRule(ruleOf(body))
  if (!rule.ok) return problem('faulty', rule.faults.join(' '))
  return done({ results: previewOf(rule.destination, messages, limits) })
}

/** The fields of a body that make a rule. */
function ruleOf(body: unknown): Rule {
  const { filter, mappings } = recordOf(body)
  return { ...(filter !== undefined && { filter }), ...(mappings !== undefined && { mappings }) }
}
