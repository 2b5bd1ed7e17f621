import { AtOnce } from '../admin/at-once.ts'
import { Pace } from '../async/pace.ts'
import { type AdminAnswer, done, missing, noToken, problem } from '../admin/problem.ts'
import { holdsSource } from '../admin/scope.ts'
import { type AdminCalls, maxAnswerCharacters } from '../admin/server.ts'
import { shareOf } from '../admin/tokens.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { listOf, recordOf } from '../catalog/plain-data.ts'
import type { Config } from '../config/schema.ts'
import { recentEvents } from './content/recent-events.ts'
import type { ReplayDesk } from './operations/replay-desk.ts'
import { boundedPreviewOf, checkRule, pieceMs, type Rule, type Tried } from './preview/preview.ts'
import { asked, type Log, notTold } from './replay-calls.ts'

/** How many previews may run at the same time. Some read much of Kafka, and some rules cost much. */
const previewsAtOnce = { most: 4, mostOfToken: 2, what: 'previews' }
/** What all previews together take of the time of the process, and one of them, in milliseconds. */
const share = 0.5
const mostMs = 2_000
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
  const bounds = { pace: new Pace({ share, pieceMs }), mostMs, mostCharacters: maxAnswerCharacters }

  async function answered(body: unknown, messages: readonly Tried[]): Promise<AdminAnswer> {
    const rule = checkRule(ruleOf(body))
    if (!rule.ok) return problem('faulty', rule.faults.join(' '))
    const { message: limits } = config
    const previewed = await boundedPreviewOf(rule.destination, messages, limits, bounds)
    if (previewed.ok) return done({ results: previewed.results })
    const { bound, after } = previewed
    return bound === 'characters'
      ? problem('answer_too_large', `The results of ${after} messages are too large: try fewer messages.`)
      : problem(
          'faulty',
          `The rule has taken more than ${mostMs / 1_000} s for ${after} messages: try fewer messages, or a rule that costs less.`,
        )
  }

  async function ofSource(id: string, body: unknown): Promise<AdminAnswer> {
    const limit = Number(recordOf(body)['limit'] ?? defaultLimit)
    return answered(body, await recentEvents(config, log, id, limit))
  }

  return {
    preview: ({ body, token }) =>
      atOnce.run(shareOf(token), () => {
        const atMs = Date.now()
        const messages = listOf(recordOf(body)['messages'])
        return answered(
          body,
          messages.map((message) => ({ value: Buffer.from(JSON.stringify(message)), atMs })),
        )
      }),
    async preview_source({ params: { source: id = '' }, body, token, isInForce }) {
      const source = catalog().sources.get(id)
      if (source === undefined || !holdsSource(token.scope, source)) return missing('source', id)
      if (source.kind !== 'events')
        return problem('conflict', 'This source has audiences. Only sources of events have events.')
      return atOnce.run(shareOf(token), async () => {
        if (!isInForce()) return noToken
        const detail = `a preview on the last events of source ${id}`
        const deed = { action: 'content_read', by: token.name, detail } as const
        const told = await asked(log, desk.tell(deed), () => done({}), { detail: notTold })
        return told.isProblem ? told : asked(log, ofSource(id, body), (answer) => answer)
      })
    },
  }
}

/** The fields of a body that make a rule. */
function ruleOf(body: unknown): Rule {
  const { filter, mappings } = recordOf(body)
  return { ...(filter !== undefined && { filter }), ...(mappings !== undefined && { mappings }) }
}
