import type { Logger } from 'pino'
import type { Config } from '../config/schema.ts'
import { answerLines, plain } from '../delivery-log/lines.ts'
import { WrongUseError } from '../roles/start/start-error.ts'
import type { Screen } from '../roles/start/progress.ts'
import { createAdminClient } from './listen/admin-client.ts'
import { type SampleKind, sampleOf } from './trigger-samples.ts'

export type TriggerOrder = {
  readonly kind: SampleKind
  /** The destination that gets the sample by itself, in one request. */
  readonly to: string | undefined
  /** The id of its only URL that gets the sample. */
  readonly hook: string | undefined
  /** The source as whose message the sample takes the whole way. */
  readonly source: string | undefined
  /** True: not even a source that the catalog lacks is refused. */
  readonly isAnySource: boolean
  readonly asJson: boolean
}

export type Triggered = { readonly lines: readonly string[]; readonly isAccepted: boolean }

/** Sends a sample: to the URLs of a destination by the admin API, or as a message of a source by Kafka. */
export async function trigger(
  config: Config,
  log: Logger,
  order: TriggerOrder,
  screen: Screen,
): Promise<Triggered> {
  const { to, source } = order
  if ((to === undefined) === (source === undefined))
    throw new WrongUseError(
      'Say where it goes: --to DESTINATION sends it to the URLs of one destination, --source SOURCE sends it as a message of a source, to all of its destinations.',
    )
  if (to !== undefined) return toDestination(config, to, order)
  return { lines: await asOfSource({ config, log, screen }, source ?? '', order), isAccepted: true }
}

async function toDestination(
  config: Config,
  to: string,
  { kind, hook, asJson }: TriggerOrder,
): Promise<Triggered> {
  const message = sampleOf(kind, Date.now())
  const body = { message, ...(hook !== undefined && { hook }) }
  const path = `/v1/destinations/${encodeURIComponent(to)}/test`
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the answer of our own API
  const tested = (await createAdminClient(config).ask('POST', path, body)) as Tested
  const lines = asJson ? [JSON.stringify(tested)] : linesOf(kind, tested)
  return { lines, isAccepted: tested.isAccepted }
}

type Tested = {
  readonly destination: string
  readonly messageId: string
  readonly isAccepted: boolean
  readonly hooks: readonly {
    readonly hook: string
    readonly origin: string
    readonly outcome: string
    readonly durationMs: number
    readonly answer: string | null
    readonly advice: string | null
  }[]
  readonly notes: readonly string[]
}

function linesOf(kind: SampleKind, { destination, messageId, hooks, notes }: Tested): string[] {
  return [
    `${destination} got ${kind} ${messageId}:`,
    ...hooks.flatMap(({ hook, origin, outcome, durationMs, answer, advice }) => [
      plain(`  ${hook}  ${origin}  ${outcome} in ${durationMs} ms`),
      ...answerLines(answer ?? '').map((line) => `  ${line}`),
      ...(advice === null ? [] : [`    ${advice}`]),
    ]),
    ...notes.map((note) => `note: ${note}`),
  ]
}

async function asOfSource(
  { config, log, screen }: { config: Config; log: Logger; screen: Screen },
  source: string,
  { kind, isAnySource, asJson }: TriggerOrder,
): Promise<readonly string[]> {
  if (kind === 'audience-enter' || kind === 'audience-exit') {
    const { changeAudience } = await import('./audience/change-audience.ts')
    const change = {
      audience: 'aud_sample',
      name: 'Sample audience',
      user: 'sample-user',
      member: String(kind === 'audience-enter'),
    }
    const flags = { ...noFlags, ...change }
    await changeAudience(config, log, { spaceId: source, isAnySource, flags }, screen)
    return asJson
      ? [JSON.stringify({ source, user: change.user })]
      : [`sent ${kind} as ${source}: \`sluice log search --source ${source}\` says what becomes of it`]
  }
  const { sendMessages } = await import('./send.ts')
  const message = sampleOf(kind, Date.now())
  await sendMessages(config, log, { sourceId: source, message: JSON.stringify(message), isAnySource })
  const id = String(message['messageId'])
  return asJson
    ? [JSON.stringify({ source, messageId: id })]
    : [`sent ${kind} ${id} as ${source}: \`sluice log find ${id}\` says what becomes of it`]
}

const noFlags = {
  audience: undefined,
  trait: undefined,
  name: undefined,
  key: undefined,
  user: undefined,
  member: undefined,
  value: undefined,
  changedAt: undefined,
}
