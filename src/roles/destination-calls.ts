import { AtOnce } from '../admin/at-once.ts'
import { type AdminAnswer, done, noToken, problem } from '../admin/problem.ts'
import type { AdminCalls } from '../admin/server.ts'
import { sees } from '../admin/scope.ts'
import { shareOf } from '../admin/tokens.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { Config } from '../config/schema.ts'
import { describeOutcome } from '../delivery/outcomes/outcome.ts'
import { holdsInfinite } from '../message/json/json.ts'
import { asked, type Log, notTold, refused } from './replay-calls.ts'
import { pausesOf } from './operations/known-pauses.ts'
import type { FollowedPicture } from './operations/picture.ts'
import type { TestOrder } from './operations/destination-test.ts'
import { testData } from './operations/destination-test-text.ts'
import type { ReplayDesk } from './operations/replay-desk.ts'
import { type PauseDesk, pausedData, resumedData } from './operations/pause-desk.ts'
import { toldOf } from './operations/destination-health.ts'
import { dropData, dropPreviewData, refusalToDrop } from './operations/drop-waiting.ts'
import { previewData, refusalOf, retryData } from './operations/retry-now.ts'

/** How many tests of destinations may run at the same time. Each has sockets of its own. */
const testsAtOnce = { most: 8, mostOfToken: 4, what: 'tests of destinations' }
const outOfRange = 'Send numbers up to 1.7e308, and larger ones as strings.'

/**
 * Creates the handler of the call that tests a destination. A test is written into the audit trail first, so
 * without Kafka there is no test.
 */
export function testCall(
  catalog: () => Catalog,
  config: Config,
  log: Log,
  desk: Pick<ReplayDesk, 'tell'>,
): Pick<AdminCalls, 'test_destination'> {
  const atOnce = new AtOnce(testsAtOnce)

  async function test(order: TestOrder, by: string): Promise<AdminAnswer> {
    const { destinationId, hookId } = order
    if (catalog().destinations.has(destinationId)) {
      const detail = hookId === undefined ? 'all its URLs' : `its URL ${JSON.stringify(hookId)}`
      const deed = { action: 'destination_tested', destination: destinationId, by, detail } as const
      const told = await asked(log, desk.tell(deed), () => done({}), { detail: notTold })
      if (told.isProblem) return told
    }
    // The admin API loads the code that sends requests only for a test.
    const { testDestination } = await import('./operations/destination-test.ts')
    const tested = await testDestination(config, catalog(), order)
    if (!tested.ok) return refused(tested)
    const { message, trials } = tested.value
    const outcomes = trials.map(({ hook, outcome }) => `${hook.id}: ${describeOutcome(outcome)}`)
    const { type, messageId } = message
    const destination = order.destinationId
    log.info({ destination, type, messageId, outcomes, by }, 'a destination was tested')
    return done(testData(tested.value))
  }

  return {
    async test_destination({ params: { destination = '' }, body, token, isInForce }): Promise<AdminAnswer> {
      const order = orderOf(destination, body)
      if (holdsInfinite(body)) return problem('bad_request', outOfRange)
      // The token may have ended while the test waited for its turn.
      return atOnce.run(shareOf(token), async () => (isInForce() ? test(order, token.name) : noToken))
    },
  }
}

/** Returns the order of a body that has passed schema validation. */
function orderOf(destinationId: string, body: unknown): TestOrder {
  const given: { hook?: unknown; message?: unknown } = typeof body === 'object' && body !== null ? body : {}
  const { hook, message } = given
  return {
    destinationId,
    hookId: typeof hook === 'string' ? hook : undefined,
    message: message === undefined ? undefined : JSON.stringify(message),
  }
}

/**
 * Creates the handlers of the admin API's calls that list destinations that Sluice has paused, resume them,
 * and try now what waits for a retry. When Kafka doesn't answer, a handler answers with a problem instead of
 * rejecting.
 */
export function destinationCalls(
  { desk, followed }: { readonly desk: PauseDesk; readonly followed: Pick<FollowedPicture, 'renew'> },
  catalog: () => Catalog,
  config: Config,
  log: Log,
): Pick<AdminCalls, 'list_paused' | 'resume_destination' | 'retry_destination'> {
  return {
    list_paused: ({ token: { scope } }) =>
      asked(log, desk.paused(), (paused) => {
        if (!paused.ok) return refused(paused)
        const seen = paused.value.filter(({ destinationId }) => sees(scope, catalog(), destinationId))
        return done({ destinations: seen.map(pausedData) })
      }),
    resume_destination({ params: { destination = '' }, token }) {
      log.info({ destination, by: token.name }, 'a destination is to be resumed')
      async function resume(): Promise<AdminAnswer> {
        const resumed = await desk.resume(destination, token.name)
        if (!resumed.ok) return refused(resumed)
        // So that the next list has it as resumed. If it can't be read, it is resumed all the same.
        await followed.renew().catch(() => undefined)
        return done(resumedData(resumed.value))
      }
      return asked(log, resume(), (answer) => answer)
    },
    retry_destination({ params: { destination = '' }, body, token }) {
      const { messageId, isPreview } = retryOf(body)
      const order = { destinationId: destination, messageId, by: token.name }
      async function retryNow(): Promise<AdminAnswer> {
        const pauses = pausesOf(await desk.paused(), await desk.gone(), config)
        const refusal = refusalOf(order, catalog(), pauses)
        if (refusal !== undefined) return refused(refusal)
        if (isPreview) return done(previewData(order, toldOf(await desk.health(), destination).retrying))
        log.info({ destination, messageId, by: token.name }, 'messages of a destination are to be tried now')
        const ordered = await desk.retryNow(order)
        return ordered.ok ? done(retryData(ordered.value)) : refused(ordered)
      }
      return asked(log, retryNow(), (answer) => answer)
    },
  }
}

/** Creates the handler of the call that gives up what waits for a destination. */
export function dropCall(
  desk: PauseDesk,
  catalog: () => Catalog,
  log: Log,
): Pick<AdminCalls, 'drop_destination'> {
  return {
    drop_destination({ params: { destination = '' }, body, token }) {
      const { isPreview } = retryOf(body)
      async function drop(): Promise<AdminAnswer> {
        const refusal = refusalToDrop(destination, catalog())
        if (refusal !== undefined) return refused(refusal)
        const waiting = toldOf(await desk.health(), destination)
        if (isPreview) return done(dropPreviewData(destination, waiting))
        log.info(
          { destination, waiting: waiting.messages, by: token.name },
          'what waits for a destination is to be given up',
        )
        const given = await desk.drop({ destinationId: destination, by: token.name })
        return given.ok ? done(dropData(given.value, waiting)) : refused(given)
      }
      return asked(log, drop(), (answer) => answer)
    },
  }
}

/** Returns the order of a body that has passed schema validation. */
function retryOf(body: unknown): { messageId: string | undefined; isPreview: boolean } {
  const given: { messageId?: unknown; dryRun?: unknown } =
    typeof body === 'object' && body !== null ? body : {}
  const { messageId, dryRun } = given
  return { messageId: typeof messageId === 'string' ? messageId : undefined, isPreview: dryRun === true }
}
