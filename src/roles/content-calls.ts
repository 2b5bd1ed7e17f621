import { AtOnce } from '../admin/at-once.ts'
import { type AdminAnswer, done, missing, noToken, problem } from '../admin/problem.ts'
import { holdsSource } from '../admin/scope.ts'
import type { AdminCalls } from '../admin/server.ts'
import { shareOf } from '../admin/tokens.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { Config } from '../config/schema.ts'
import { eventData } from './content/event-data.ts'
import { readLatest } from './content/recent-events.ts'
import type { ReplayDesk } from './operations/replay-desk.ts'
import { previewCalls } from './preview-calls.ts'
import { asked, type Log, notTold } from './replay-calls.ts'
import { topicNames } from './start/settings.ts'

/** How many readings of events may run at the same time. Each may read much of Kafka. */
const readingsAtOnce = { most: 4, mostOfToken: 2, what: 'readings of events' }
const defaultLimit = 20

export type ContentCallsOptions = {
  readonly config: Config
  readonly log: Log
  readonly desk: Pick<ReplayDesk, 'tell'>
  readonly catalog: () => Catalog
}

/**
 * Creates the handlers of the calls that show the last events of a source, or try a rule on them. They are
 * written into the audit trail first, so without Kafka nothing is shown.
 */
export function contentCalls({
  config,
  log,
  desk,
  catalog,
}: ContentCallsOptions): Pick<AdminCalls, 'list_source_events' | 'preview' | 'preview_source'> {
  const atOnce = new AtOnce(readingsAtOnce)

  async function read(sourceId: string, limit: number): Promise<AdminAnswer> {
    const { events, lookedAt, isAll } = await readLatest(config, log, sourceId, limit)
    return done({ events: await eventData(config, topicNames(config).events, events), lookedAt, isAll })
  }

  return {
    ...previewCalls({ config, log, desk, catalog }),
    async list_source_events({ params: { source: id = '' }, query, token, isInForce }) {
      const source = catalog().sources.get(id)
      if (source === undefined || !holdsSource(token.scope, source)) return missing('source', id)
      if (source.kind !== 'events') return problem('conflict', ofAudiences)
      const limit = query['limit'] === undefined ? defaultLimit : Number(query['limit'])
      return atOnce.run(shareOf(token), async () => {
        if (!isInForce()) return noToken
        const deed = {
          action: 'content_read',
          by: token.name,
          detail: `the last events of source ${id}`,
        } as const
        const told = await asked(log, desk.tell(deed), () => done({}), { detail: notTold })
        return told.isProblem ? told : asked(log, read(id, limit), (answer) => answer)
      })
    },
  }
}

const ofAudiences =
  'This source has audiences. Only sources of events have events: list those that there are.'
