import type { Hook } from '../../catalog/catalog.ts'
import { certificateEndMs } from '../../catalog/features/hook-tls.ts'
import type { DestinationHealth, FailingHook } from '../../health/health-board.ts'
import { type AssessedDestination, type Condition, failuresOf, isSuccess } from './destination-conditions.ts'
import { roughly } from './destination-health.ts'
import type { KnownHealth } from './health-reading.ts'
import { timeOf } from './pause-desk.ts'

/**
 * Returns the health of a destination as the HTTP API and `--json` show it. What isn't known is null, and
 * never 0.
 */
export function healthData(assessed: AssessedDestination, { board, nowMs }: KnownHealth) {
  const { condition, destination, health, sinceMs, nextMs } = assessed
  const { messages, oldestMs, drainMs, inFlight, perSecond, isLowered } = health
  return {
    condition,
    since: timeOrNull(sinceMs),
    why: whyOf(assessed, nowMs),
    nextTryAt: timeOrNull(nextMs),
    secretEndsAt: timeOrNull(destination.sharedSecretEndsAtMs),
    asOf: timeOrNull(board?.asOfMs(nowMs)),
    waiting: messages ?? null,
    oldestWaitingSince: timeOrNull(oldestMs),
    drainedInSeconds: drainMs === undefined ? null : Math.ceil(drainMs / 1_000),
    inFlightLimit: inFlight ?? null,
    perSecondLimit: perSecond ?? null,
    isLimitLowered: inFlight === undefined ? null : isLowered,
  }
}

/** Returns a hook as the HTTP API and `--json` show it. Of its URL, it has only the origin. */
export function hookData({ goneHooks, failing }: AssessedDestination, { id, origin, login, tls }: Hook) {
  const known = failing.find(({ hook }) => hook === id)
  return {
    id,
    origin,
    login: login?.kind ?? null,
    tokenOrigin: login?.kind === 'oauth2' ? login.tokenOrigin : null,
    certificateEndsAt: timeOrNull(tls && certificateEndMs(tls)),
    hasOwnAuthorities: tls?.ca !== undefined,
    isGone: goneHooks.includes(id),
    failing: known === undefined ? null : failingData(known),
  }
}

function failingData({ sinceMs, isOpen, answers, failedMs, succeededMs, loginProblem }: FailingHook) {
  return {
    since: timeOf(sinceMs),
    isBreakerOpen: isOpen,
    answers: answers.map(([outcome, count]) => ({ outcome, count })),
    lastFailureAt: timeOf(failedMs),
    lastSuccessAt: timeOrNull(succeededMs),
    loginProblem: loginProblem ?? null,
  }
}

export function timeOrNull(ms: number | undefined): string | null {
  return ms === undefined ? null : timeOf(ms)
}

/** The headings of `healthCells`. */
export const healthHeadings = ['condition', 'waiting', 'oldest', 'sent in', 'takes'] as const

/** Returns the health of a destination in cells of a table. A `?` stands for what isn't known. */
export function healthCells(
  { condition, state, health }: AssessedDestination,
  nowMs: number,
): readonly string[] {
  const { messages, oldestMs, drainMs } = health
  const waits = messages !== undefined && messages > 0
  return [
    condition === 'unknown' ? '?' : condition,
    messages === undefined ? '?' : String(messages),
    waits ? ageOf(oldestMs, nowMs) : '',
    waits && state === 'on' ? aboutOf(drainMs) : '',
    limitOf(health),
  ]
}

function ageOf(sinceMs: number | undefined, nowMs: number): string {
  return sinceMs === undefined ? '?' : roughly(nowMs - sinceMs)
}

function aboutOf(ms: number | undefined): string {
  return ms === undefined ? '?' : roughly(ms)
}

/** Says how much an endpoint takes at present, if it is less than it could get. */
function limitOf({ inFlight, perSecond, isLowered }: DestinationHealth): string {
  if (perSecond !== undefined) return `${Number(perSecond.toPrecision(2))}/s`
  return isLowered && inFlight !== undefined ? `${inFlight} at once` : ''
}

/**
 * Says why a destination is in its condition, such as
 * `503 from crm.example.com for 14 min, 1,240 wait, oldest 12 min, next try in 40 s`. Returns an empty text
 * if there is nothing to say.
 */
export function whyOf(assessed: AssessedDestination, nowMs: number): string {
  const { condition, health, nextMs } = assessed
  const waits = waitsOf(health, nowMs)
  switch (condition) {
    case 'failing': {
      const next = nextMs === undefined ? [] : [`next try in ${spoken(nextMs - nowMs)}`]
      return [...failuresText(assessed, nowMs), ...waits, ...next].join(', ')
    }
    case 'gone':
    case 'auto_paused':
      return [...pauseText(assessed, nowMs), ...waits].join(', ')
    case 'paced':
      return [paceText(assessed), ...waits, ...drainText(health)].join(', ')
    case 'paused':
      return ['paused in the catalog', ...waits].join(', ')
    case 'off':
      return 'off in the catalog'
    case 'unknown':
      return 'not all workers tell'
    case 'healthy':
      return assessed.destination.sources.length === 0 ? 'no source sends to it' : ''
  }
}

function failuresText({ destination, failing }: AssessedDestination, nowMs: number): readonly string[] {
  const [worst] = failing.toSorted((one, other) => failuresOf(other) - failuresOf(one))
  if (worst === undefined) return []
  const hook = destination.hooks.find(({ id }) => id === worst.hook)
  const others = failing.length > 1 ? [`${failing.length} of ${destination.hooks.length} URLs fail`] : []
  return [
    `${outcomeText(worst)} from ${hostOf(hook)} for ${spoken(nowMs - worst.sinceMs)}${shareText(worst)}`,
    ...others,
  ]
}

/** Returns the most frequent failure. */
function outcomeText({ answers }: FailingHook): string {
  const [what = 'failures'] = answers.find(([one]) => !isSuccess(one)) ?? []
  return what.replace(/^status /, '')
}

/** Says how many of the last requests have failed, if some have not. */
function shareText(hook: FailingHook): string {
  const requests = hook.answers.reduce((sum, [, count]) => sum + count, 0)
  const failures = failuresOf(hook)
  return failures === requests ? '' : ` (${numeral(failures)} of ${numeral(requests)} requests)`
}

function hostOf(hook: Hook | undefined): string {
  return hook?.origin.replace(/^https?:\/\//, '') ?? 'a URL'
}

function pauseText({ destination, goneHooks, pause, state }: AssessedDestination, nowMs: number) {
  const since = pause === undefined ? '' : ` ${spoken(nowMs - pause.atMs)} ago`
  const gone = destination.hooks.filter(({ id }) => goneHooks.includes(id))
  if (gone.length > 0) {
    const which =
      gone.length === destination.hooks.length ? '' : ` (${gone.length} of ${destination.hooks.length} URLs)`
    return [`410 (Gone) from ${hostOf(gone[0])}${which}${since}`]
  }
  if (state !== 'auto_paused') return []
  return [`paused by Sluice${since}${pause === undefined ? '' : `, after ${pause.lastOutcome}`}`]
}

function paceText({ destination: { rateLimit }, health }: AssessedDestination): string {
  const limit = limitOf(health)
  if (health.isLowered) return `takes ${limit === '' ? 'less than it gets' : limit}`
  return rateLimit === undefined ? 'gets more than it takes' : `limited to ${rateLimit.perSecond}/s`
}

function waitsOf({ messages, oldestMs }: DestinationHealth, nowMs: number): readonly string[] {
  if (messages === undefined || messages === 0) return []
  const oldest = oldestMs === undefined ? [] : [`oldest ${spoken(nowMs - oldestMs)}`]
  return [`${numeral(messages)} wait`, ...oldest]
}

/** Says what the number of waiting messages leaves out, of a destination that may have had failures. */
function uncountedOf(condition: Condition): readonly string[] {
  const isWhole = condition === 'healthy' || condition === 'paced'
  return isWhole ? [] : ['without those that wait for their next try, which nobody counts by destination']
}

function drainText({ messages = 0, drainMs }: DestinationHealth): readonly string[] {
  return messages > 0 && drainMs !== undefined ? [`sent in ${spoken(drainMs)}`] : []
}

/** Returns the command to run next for a destination that needs attention. */
export function nextCommandOf({ condition, destination: { id } }: AssessedDestination): string {
  const isPausedBySluice = condition === 'gone' || condition === 'auto_paused'
  return isPausedBySluice
    ? `sluice destinations test ${id} && sluice destinations resume ${id}`
    : `sluice destinations status ${id}`
}

/** Says a time span in a sentence. */
export function spoken(ms: number): string {
  return roughly(ms).replace(/ m$/, ' min')
}

export function numeral(value: number): string {
  return value.toLocaleString('en-US')
}

/** Says what is known of one destination, line by line. */
export function conditionLines(assessed: AssessedDestination, known: KnownHealth): string[] {
  const { condition, destination, state, health, nextMs } = assessed
  const { nowMs } = known
  const { id, sharedSecretEndsAtMs } = destination
  const limit = limitOf(health)
  const rows: [string, string][] = [
    ['state', state],
    ['condition', [condition, whyOf(assessed, nowMs)].filter((text) => text !== '').join(': ')],
    [
      'waiting',
      health.messages === undefined
        ? '?'
        : [numeral(health.messages), ...waitsOf(health, nowMs).slice(1), ...uncountedOf(condition)].join(
            ', ',
          ),
    ],
    ...(limit === '' ? [] : [['takes', limit] as [string, string]]),
    ...(nextMs === undefined ? [] : [['next try', timeOf(nextMs)] as [string, string]]),
    ...(sharedSecretEndsAtMs === undefined
      ? []
      : [['secret ends', timeOf(sharedSecretEndsAtMs)] as [string, string]]),
    ...destination.hooks.map((hook): [string, string] => [`URL ${hook.id}`, hookText(assessed, hook, nowMs)]),
    ...commandsOf(assessed).map((command, place): [string, string] => [place === 0 ? 'next' : '', command]),
  ]
  const width = Math.max(id.length, ...rows.map(([name]) => name.length))
  return [id, ...rows.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`.trimEnd())]
}

function hookText({ goneHooks, failing }: AssessedDestination, hook: Hook, nowMs: number): string {
  if (goneHooks.includes(hook.id)) return `${hook.origin}  gone: it has answered 410`
  const known = failing.find((one) => one.hook === hook.id)
  if (known === undefined) return `${hook.origin}  no failures are told`
  const { sinceMs, isOpen, answers, failedMs, succeededMs } = known
  const counts = answers.map(([what, count]) => `${what} × ${numeral(count)}`)
  return [
    `${hook.origin}  fails since ${timeOf(sinceMs)} (${spoken(nowMs - sinceMs)})`,
    ...(counts.length === 0 ? [] : [`last minutes: ${counts.join(', ')}`]),
    `breaker ${isOpen ? 'open' : 'closed'}`,
    `last failure ${spoken(nowMs - failedMs)} ago`,
    succeededMs === undefined ? 'no success since' : `last success ${spoken(nowMs - succeededMs)} ago`,
  ].join('; ')
}

function commandsOf({ condition, destination: { id } }: AssessedDestination): readonly string[] {
  switch (condition) {
    case 'failing':
      return [
        `sluice destinations test ${id}`,
        `sluice log search --destination ${id} --failed --since 1h --limit 20`,
        `sluice destinations retry-now ${id}`,
      ]
    case 'gone':
    case 'auto_paused':
      return [`sluice destinations test ${id}`, `sluice destinations resume ${id}`]
    case 'paced':
      return [
        `sluice log search --destination ${id} --since 1h --limit 20`,
        `sluice destinations drop ${id} --waiting --dry-run`,
      ]
    case 'paused':
      return [
        `sluice destinations test ${id}`,
        `sluice destinations resume ${id}`,
        `sluice destinations drop ${id} --waiting --dry-run`,
      ]
    case 'unknown':
      return ['sluice status']
    case 'healthy':
    case 'off':
      return []
  }
}
