import { answerLines, plain } from '../../delivery-log/lines.ts'
import type { Hook } from '../../catalog/catalog.ts'
import { certificateEndMs } from '../../catalog/features/hook-tls.ts'
import { hostBreach } from '../../catalog/host-rules.ts'
import { adviceOn } from '../../delivery/advice.ts'
import { describeOutcome, isOwnFault, type Outcome } from '../../delivery/outcomes/outcome.ts'
import type { VerdictKind } from '../../delivery/outcomes/verdict.ts'
import { route } from '../../routing/route.ts'
import { aligned } from './aligned.ts'
import { timeOrNull } from './condition-text.ts'
import type { DestinationTest, HookTrial } from './destination-test.ts'
import { counted } from '../start/progress.ts'

// Formats the test of a destination for people and for programs. Control characters are removed from lines
// for people, because the answers of endpoints aren't trusted.

/** Returns true if every hook accepted the message. */
export function isAccepted({ trials }: DestinationTest): boolean {
  return trials.every(({ verdict }) => verdict.kind === 'delivered')
}

/**
 * Returns what would become of a delivery to all of the destination's hooks. Returns `undefined` if only one
 * of several hooks was tested.
 */
function verdictOf({ destination, trials }: DestinationTest): DeliveryVerdict | undefined {
  if (trials.length < destination.hooks.length) return undefined
  const kinds = new Set(trials.map((trial) => trial.verdict.kind))
  if (kinds.has('delivered')) return 'delivered'
  return kinds.has('retry') ? 'retry' : 'dead_letter'
}

type DeliveryVerdict = 'delivered' | 'retry' | 'dead_letter'

const deliveryVerdicts: Readonly<Record<DeliveryVerdict, string>> = {
  delivered: 'A delivery would succeed, because one URL is enough.',
  retry: 'A delivery would be tried again.',
  dead_letter: 'A delivery would become a dead letter.',
}

export function testLines(test: DestinationTest): string[] {
  const { trials } = test
  const lines = aligned(trials.map(cellsOf))
  const results = trials.flatMap((trial, at) => {
    const { outcome } = trial
    const advice = adviceOf(test, outcome)
    const adviceLines = advice === undefined ? [] : [`  ${advice}`]
    const ofToken = tokenLines(test, trial)
    return [lines[at] ?? '', ...ofToken, ...answerLines(answerOf(outcome)), ...adviceLines]
  })
  const verdict = verdictOf(test)
  const ofDelivery = verdict === undefined || isAccepted(test) ? [] : [deliveryVerdicts[verdict]]
  return [headline(test), ...results, ...ofDelivery, ...notesOn(test).map((note) => `note: ${note}`)]
}

/** Returns a test as the HTTP API and `--json` show it. */
export function testData(test: DestinationTest): object {
  const { destination, message, trials } = test
  return {
    destination: destination.id,
    messageId: message.messageId,
    isAccepted: isAccepted(test),
    verdict: verdictOf(test) ?? null,
    hooks: trials.map((trial) => {
      const { hook, outcome, verdict, durationMs } = trial
      const answer = answerOf(outcome)
      const { tls } = definitionOf(test, trial) ?? {}
      return {
        hook: hook.id,
        origin: hook.target.origin,
        login: loginData(test, trial),
        certificateEndsAt: timeOrNull(tls && certificateEndMs(tls)),
        verdict: verdict.kind,
        outcome: describeOutcome(outcome),
        status: outcome.kind === 'answer' ? outcome.status : null,
        durationMs: Math.round(durationMs),
        answer: answer === '' ? null : answer,
        advice: adviceOf(test, outcome) ?? null,
      }
    }),
    notes: notesOn(test),
  }
}

function definitionOf({ destination: { hooks } }: DestinationTest, { hook }: HookTrial): Hook | undefined {
  return hooks.find(({ id }) => id === hook.id)
}

/** Returns how a request has logged in. Null: it has only its headers, or there was no request. */
function loginData(test: DestinationTest, trial: HookTrial): object | null {
  const login = definitionOf(test, trial)?.login
  const { token } = trial
  if (login?.kind === 'basic') return { kind: 'basic', tokenOrigin: null, problem: null, durationMs: null }
  if (login === undefined || token === undefined) return null
  const { problem = null, durationMs } = token
  return { kind: 'oauth2', tokenOrigin: login.tokenOrigin, problem, durationMs: Math.round(durationMs) }
}

/** Says where a token came from. If none came, the outcome of the request says why. */
function tokenLines(test: DestinationTest, trial: HookTrial): readonly string[] {
  const login = definitionOf(test, trial)?.login
  const { token } = trial
  if (login?.kind !== 'oauth2' || token === undefined || token.problem !== undefined) return []
  return [`  a token came from ${login.tokenOrigin} after ${Math.round(token.durationMs)} ms`]
}

function adviceOf({ destination, timeoutMs }: DestinationTest, outcome: Outcome): string | undefined {
  const own = destination.timeoutMs ?? timeoutMs
  return own < timeoutMs ? adviceOn(outcome, own, 'its timeout in the catalog') : adviceOn(outcome, timeoutMs)
}

function headline({ destination, message, trials }: DestinationTest): string {
  const { id, sharedSecret, standardWebhooks, signingKeys, batch } = destination
  const headers = [
    ...(sharedSecret === undefined ? [] : ['X-Signature']),
    ...(standardWebhooks || signingKeys !== undefined ? ['webhook-signature'] : []),
  ]
  const signed = headers.length === 0 ? 'not signed' : `signed with ${headers.join(' and ')}`
  const alone = batch === undefined ? '' : ', as a batch of one'
  const sent = `for ${counted(trials.length, 'URL')}${alone}, ${signed}`
  return `${id}: ${message.type} ${plain(message.messageId)}, ${sent}`
}

const verdicts: Readonly<Record<VerdictKind, string>> = {
  delivered: 'accepted',
  retry: 'failed: this URL would be tried again',
  final: 'failed for good: this URL would not be tried again',
}

function cellsOf({ hook, outcome, verdict, durationMs }: HookTrial): string[] {
  const result = plain(describeOutcome(outcome))
  const judged = isOwnFault(outcome) ? 'not sent' : verdicts[verdict.kind]
  return [hook.id, hook.target.origin, result, `${Math.round(durationMs)} ms`, judged]
}

function answerOf(outcome: Outcome): string {
  return outcome.kind === 'answer' && outcome.body !== undefined ? Buffer.from(outcome.body).toString() : ''
}

/** Returns a sentence for each reason why a worker would not have sent the message now. */
function notesOn({ destination, message, trials, policy }: DestinationTest): string[] {
  const { id, state } = destination
  const { skipped, failed } = route(message, [{ ...destination, state: 'on' }])
  const reason = skipped[0]?.reason
  const why: string[] = []
  if (state === 'off') why.push(`${id} is off in the catalog, so it gets no messages.`)
  if (state === 'paused') why.push(`${id} is paused in the catalog, so its messages wait until it is on.`)
  if (state === 'auto_paused')
    why.push(`Sluice has paused ${id}, so it gets no messages until it is resumed.`)
  const [fault] = failed
  if (fault !== undefined)
    why.push(`The condition of ${id} can't be evaluated for this message: ${fault.detail}.`)
  if (reason === 'filtered_by_missing_field')
    why.push(`This message lacks a field of the condition of ${id}, or it has another type.`)
  if (reason === 'filtered_by_sample') why.push(`The user of this message is not in the sample of ${id}.`)
  if (reason === 'filtered_by_destination') why.push(`The filter of ${id} excludes this message.`)
  if (reason === 'filtered_by_integrations') why.push('The integrations of the message exclude webhooks.')
  return [
    ...destination.hooks.flatMap(({ id: hook, tls }) => certificateNote(hook, tls && certificateEndMs(tls))),
    ...why.map((sentence) => `${sentence} This doesn't stop a test.`),
    ...trials
      .filter(({ hook }) => hostBreach(hook.target.origin, policy) !== undefined)
      .map(
        ({ hook }) => `Workers refuse the whole catalog, because the address of ${hook.id} is not public.`,
      ),
  ]
}

/** A client certificate that ends within this time is told, in milliseconds. */
const endsSoonMs = 30 * 24 * 3_600_000

function certificateNote(hook: string, endMs: number | undefined): readonly string[] {
  const leftMs = endMs === undefined ? Infinity : endMs - Date.now()
  if (endMs === undefined || leftMs > endsSoonMs) return []
  const when = new Date(endMs).toISOString()
  return [`The client certificate of ${hook} ${leftMs > 0 ? 'ends' : 'has ended'} at ${when}: renew it.`]
}
