import type { Config } from '../../config/schema.ts'
import { adviceOn } from '../../delivery/advice.ts'
import { describeOutcome } from '../../delivery/outcomes/outcome.ts'
import { answerLines, plain } from '../../delivery-log/lines.ts'
import { LinesForPeople } from '../../telemetry/lines-for-people.ts'
import { type AdminClient, createAdminClient, NoAnswerError, RefusedError } from './admin-client.ts'
import { type Contents, contentsOf } from './contents.ts'
import { type FeedEvent, type FeedFilter, type LiveAttempt, pollFeed } from './feed.ts'
import { createForwarder, type Forwarder } from './forward.ts'

export type ListenOptions = {
  readonly filter: FeedFilter
  /** Where to forward each request. `undefined`: the attempts are only shown. */
  readonly forward: string | undefined
  readonly secret: string | undefined
  readonly standardWebhooks: boolean
  readonly isJson: boolean
  readonly hasColours: boolean
  /** Writes a line of the results. */
  readonly write: (line: string) => void
  /** Tells the person at the terminal. */
  readonly say: (line: string) => void
  readonly signal: AbortSignal
}

/**
 * Shows the requests to destinations as they are made, and forwards them to a URL of this machine. Resolves
 * when `signal` is aborted.
 */
export async function listen(config: Config, options: ListenOptions): Promise<void> {
  const { filter, forward, secret, standardWebhooks, say, signal } = options
  const client = createAdminClient(config)
  const forwarder =
    forward === undefined ? undefined : createForwarder(config, { url: forward, secret, standardWebhooks })
  const show = new Showing(options, config.delivery.timeoutMs)
  try {
    const contents = forwarder && contentsOf(client)
    const lacking = await whatLacks(client, filter)
    say(`Listening to ${subjectOf(filter)} at ${client.origin}. Ctrl-C ends it.`)
    if (forwarder !== undefined) say(`Forwarding to ${forward}, signed with the secret ${forwarder.secret}`)
    for (const line of lacking) say(line)
    for await (const event of pollFeed(client, { filter, signal })) {
      if (event.kind !== 'attempts') say(textOf(event))
      else
        for (const attempt of event.attempts) {
          if (signal.aborted) break
          // One after the other, so that they arrive in the order in which they were made.
          await show.told(attempt, forwarder && contents && { forwarder, contents, signal })
        }
    }
  } finally {
    await forwarder?.close()
  }
}

/**
 * Says what of the filter the catalog lacks. Whoever listens goes on, because it may be made later. An API
 * that doesn't answer says nothing: the feed tells that.
 */
async function whatLacks(client: AdminClient, { destination, source }: FeedFilter): Promise<string[]> {
  const paths = [
    ...(destination === undefined ? [] : [`/v1/destinations/${encodeURIComponent(destination)}/health`]),
    ...(source === undefined ? [] : [`/v1/destinations?limit=1&source=${encodeURIComponent(source)}`]),
  ]
  const said = await Promise.all(
    paths.map((path) =>
      client.ask('GET', path).then(
        () => [],
        (error: unknown) => {
          if (error instanceof NoAnswerError) return []
          if (error instanceof RefusedError && (error.status === 404 || error.status === 400))
            return [`${error.said} Until there is one, nothing comes.`]
          throw error
        },
      ),
    ),
  )
  return said.flat()
}

function subjectOf({ destination, source }: FeedFilter): string {
  if (destination !== undefined) return `the destination ${destination}`
  return source === undefined ? 'all destinations' : `the messages of the source ${source}`
}

function textOf(event: Exclude<FeedEvent, { kind: 'attempts' }>): string {
  switch (event.kind) {
    case 'lost':
      return `Interrupted: ${event.why} Trying again; nothing is missed that the log still has.`
    case 'back':
      return 'Listening again.'
    case 'left_out':
      return 'There are more requests than this command shows: the oldest of them are left out.'
  }
}

type Forwarding = {
  readonly forwarder: Forwarder
  readonly contents: Contents
  readonly signal: AbortSignal
}

/** What became of forwarding a request. `skipped` says why it wasn't forwarded. */
type Result =
  | { readonly skipped: string }
  | {
      readonly outcome: string
      readonly status: number | null
      readonly durationMs: number
      readonly lines: readonly string[]
    }

/** Shows attempts, and what became of forwarding them. */
class Showing {
  readonly #options: ListenOptions
  readonly #timeoutMs: number
  readonly #people: LinesForPeople

  constructor(options: ListenOptions, timeoutMs: number) {
    const { hasColours, write } = options
    this.#options = options
    this.#timeoutMs = timeoutMs
    this.#people = new LinesForPeople({ write: (text) => write(text.trimEnd()) }, { hasColours })
  }

  async told(attempt: LiveAttempt, forwarding: Forwarding | undefined): Promise<void> {
    if (!this.#options.isJson) this.#people.write(`${JSON.stringify(lineOf(attempt))}\n`)
    const result = forwarding && (await this.#forward(attempt, forwarding))
    if (this.#options.isJson) {
      const forwarded = result === undefined ? {} : { forwarded: withoutLines(result) }
      this.#options.write(JSON.stringify({ ...attempt, ...forwarded }))
      return
    }
    if (result === undefined) for (const line of answerLines(attempt.answer ?? '')) this.#options.write(line)
    else this.#showResult(result)
  }

  async #forward(attempt: LiveAttempt, { forwarder, contents, signal }: Forwarding): Promise<Result> {
    const content = await contents.of(attempt, signal)
    if (!content.ok) return { skipped: content.why }
    const { outcome, durationMs } = await forwarder.send({
      messageId: attempt.messageId ?? '',
      attempts: Math.max(1, attempt.attempt),
      body: content.body,
      shaped: content.shaped,
    })
    const advice = adviceOn(outcome, this.#timeoutMs)
    const answer = outcome.kind === 'answer' && outcome.body !== undefined ? outcome.body.toString() : ''
    return {
      outcome: describeOutcome(outcome),
      status: outcome.kind === 'answer' ? outcome.status : null,
      durationMs: Math.round(durationMs * 10) / 10,
      lines: [...answerLines(answer), ...(advice === undefined ? [] : [`  ${advice}`])],
    }
  }

  #showResult(result: Result): void {
    const { write, forward = '' } = this.#options
    if ('skipped' in result) return write(plain(`  not forwarded: ${result.skipped}`))
    write(plain(`  ⇒ ${forward} ${result.outcome} in ${result.durationMs} ms`))
    for (const line of result.lines) write(`  ${line}`)
  }
}

function withoutLines(result: Result): object {
  if ('skipped' in result) return result
  const { lines: _lines, ...rest } = result
  return rest
}

/** Returns the attempt as a line of a worker's log has it. */
function lineOf(attempt: LiveAttempt): object {
  const { at, destination, messageId, messageType, verdict, outcome, status, durationMs, error, replay } =
    attempt
  return {
    time: at,
    destination,
    messageId,
    type: replay === null ? messageType : `${messageType} (replay ${replay})`,
    attempt: attempt.attempt,
    verdict,
    outcome,
    ...(status !== null && { status }),
    ...(error !== null && { code: error }),
    durationMs,
  }
}
