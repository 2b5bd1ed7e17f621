import { type Answer, answered, within } from './answer.ts'
import { admin } from './client.ts'
import type { CountedRange } from './minutes.ts'
import type {
  BulkOrder,
  Destination,
  Grant,
  GroupedStats,
  LogKind,
  ReplaySelection,
  ReplayState,
  Right,
  Scope,
  Source,
} from './types.ts'

// One function for each call of the admin API that the pages make (docs/admin-api.md).

/** Options of a question. */
export type Reading = { readonly signal?: AbortSignal }

/** The version that a change expects. `undefined`: the object must not exist yet. */
export type Change = { readonly version: string | undefined; readonly isDryRun: boolean }

function changing({ version, isDryRun }: Change) {
  const query = isDryRun ? { query: { dryRun: true as const } } : {}
  return {
    ...within(),
    ...query,
    ...(version === undefined ? { ifNoneMatch: '*' as const } : { ifMatch: version }),
  }
}

/** Options of a request that must not be carried out twice if its answer is lost. */
function once() {
  return { ...within(), idempotencyKey: crypto.randomUUID() }
}

type Filled<T> = { [K in keyof T]?: Exclude<T[K], undefined | ''> }

/** Returns an object without the fields that are empty. */
function filled<T extends object>(fields: T): Filled<T> {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined && value !== '')
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only fields were left out
  return Object.fromEntries(given) as Filled<T>
}

export function readStatus(reading: Reading = {}) {
  return answered(admin.get('/v1/status', within(reading)))
}

export type ListQuery = {
  readonly search?: string | undefined
  readonly state?: ListState | '' | undefined
  readonly label?: string | undefined
  readonly source?: string | undefined
  readonly sort?: 'id' | 'worst' | undefined
  readonly cursor?: string | undefined
  readonly limit?: number | undefined
}
export type ListState =
  | 'on'
  | 'off'
  | 'paused'
  | 'auto_paused'
  | 'failing'
  | 'gone'
  | 'paced'
  | 'unknown'
  | 'healthy'
  | 'waiting'

export function listDestinations(query: ListQuery, reading: Reading = {}) {
  return answered(admin.get('/v1/destinations', { query: filled(query), ...within(reading) }))
}

const ofDestination = (destination: string) => ({ path: { destination } })

export function readHealth(id: string, reading: Reading = {}) {
  return answered(
    admin.get('/v1/destinations/{destination}/health', { ...ofDestination(id), ...within(reading) }),
  )
}

export function readDestination(id: string, reading: Reading = {}) {
  return answered(admin.get('/v1/destinations/{destination}', { ...ofDestination(id), ...within(reading) }))
}

export function putDestination(destination: Destination, change: Change) {
  const { id } = destination
  return answered(
    admin.put('/v1/destinations/{destination}', {
      ...ofDestination(id),
      body: destination,
      ...changing(change),
    }),
  )
}

export function patchDestination(id: string, patch: Record<string, unknown>, change: Change) {
  return answered(
    admin.patch('/v1/destinations/{destination}', {
      ...ofDestination(id),
      body: patch,
      ...changing(change),
    }),
  )
}

export function removeDestination(id: string, change: Change) {
  return answered(
    admin.delete('/v1/destinations/{destination}', { ...ofDestination(id), ...changing(change) }),
  )
}

/** Does the same to many destinations, or says with `dryRun` to which it would be done. */
export function changeMany(order: BulkOrder) {
  return answered(admin.post('/v1/destinations/bulk', { body: order, ...within() }))
}

export function testDestination(id: string, hook: string | undefined) {
  const body = hook === undefined ? {} : { hook }
  return answered(
    admin.post('/v1/destinations/{destination}/test', { ...ofDestination(id), body, ...within() }),
  )
}

/** Resumes a destination that Sluice has paused. */
export function resumeDestination(id: string) {
  return answered(admin.post('/v1/destinations/{destination}/resume', { ...ofDestination(id), ...within() }))
}

export function retryNow(id: string, order: { readonly messageId?: string; readonly dryRun?: boolean }) {
  return answered(
    admin.post('/v1/destinations/{destination}/retry-now', {
      ...ofDestination(id),
      body: order,
      ...within(),
    }),
  )
}

export function dropWaiting(id: string, order: { readonly dryRun: boolean }) {
  const body = { waiting: true as const, ...order }
  return answered(
    admin.post('/v1/destinations/{destination}/drop', { ...ofDestination(id), body, ...within() }),
  )
}

/** What is replaced: the shared secret, or the key of Ed25519. */
export type Replaced = 'secret' | 'key'

const ofKey = (what: Replaced) => (what === 'key' ? { query: { ed25519: true as const } } : {})

/**
 * Makes a new secret or key. `endsAt` is when the old secret ends by itself. `undefined`: when somebody ends
 * it.
 */
export function rotateSecret(id: string, what: Replaced, endsAt: string | undefined) {
  const body = endsAt === undefined ? {} : { oldSecretEndsAt: endsAt }
  return answered(
    admin.post('/v1/destinations/{destination}/rotate', {
      ...ofDestination(id),
      ...ofKey(what),
      body,
      ...once(),
    }),
  )
}

export function endOldSecret(id: string, what: Replaced) {
  return answered(
    admin.post('/v1/destinations/{destination}/rotate/end', {
      ...ofDestination(id),
      ...ofKey(what),
      ...once(),
    }),
  )
}

/** Reads the public keys with which receivers verify signatures. */
export function readSigningKeys(id: string, reading: Reading = {}) {
  return answered(
    admin.get('/v1/destinations/{destination}/signing-keys', { ...ofDestination(id), ...within(reading) }),
  )
}

/** A filter and mappings, as a destination has them. */
export type TriedRule = {
  readonly filter?: Record<string, unknown>
  readonly mappings?: Record<string, unknown>[]
}

/** Says what a destination with a rule would do with messages. */
export function tryRule(rule: TriedRule, messages: Record<string, unknown>[], reading: Reading = {}) {
  return answered(admin.post('/v1/preview', { body: { ...rule, messages }, ...within(reading) }))
}

/** Says the same of the last events of a source. The audit trail says who has looked at them. */
export function tryRuleOnSource(source: string, rule: TriedRule) {
  return answered(admin.post('/v1/sources/{source}/preview', { path: { source }, body: rule, ...within() }))
}

export function readMessage(id: string, reading: Reading = {}) {
  return answered(admin.get('/v1/log/messages/{message}', { path: { message: id }, ...within(reading) }))
}

/** Reads what a message contains. The audit trail says who did. */
export function readContent(id: string) {
  return answered(admin.get('/v1/log/messages/{message}/content', { path: { message: id }, ...within() }))
}

export type DeadQuery = { readonly from: string; readonly destination?: string | undefined }

/** Counts dead letters by destination and reason. */
export function countDeadLetters(query: DeadQuery, reading: Reading = {}) {
  return answered(admin.post('/v1/dead-letters/summary', { body: filled(query), ...within(reading) }))
}

/** Reads the last events of a source. The audit trail says who did. */
export function readSourceEvents(id: string) {
  return answered(
    admin.get('/v1/sources/{source}/events', { path: { source: id }, query: { limit: 10 }, ...within() }),
  )
}

export type EventSearchQuery = {
  readonly conditions: string[]
  readonly source?: string | undefined
  readonly from: string
  readonly cursor?: string | undefined
}

/** Reads a part of a search through the events. The audit trail says who did. */
export function searchEvents(query: EventSearchQuery, reading: Reading = {}) {
  return answered(admin.post('/v1/events/search', { body: filled(query), ...within(reading) }))
}

export type LogSearch = {
  readonly from?: string | undefined
  readonly destination?: string | undefined
  readonly source?: string | undefined
  readonly user?: string | undefined
  readonly value?: string | undefined
  readonly status?: number | undefined
  readonly kinds?: LogKind[] | undefined
  readonly reason?: string | undefined
  readonly isFailed?: boolean | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

export function searchLog(search: LogSearch, reading: Reading = {}) {
  return answered(admin.post('/v1/log/search', { body: filled(search), ...within(reading) }))
}

/** Counts by the minute, with durations. */
export async function readMinutes(
  range: { readonly from: string; readonly destination?: string },
  reading: Reading = {},
): Promise<Answer<CountedRange>> {
  const answer = await answered(admin.post('/v1/log/stats', { body: range, ...within(reading) }))
  if (!answer.ok) return answer
  const { from, to, minutes = [] } = answer.value
  return { ...answer, value: { from, to, minutes } }
}

export type StepQuery = {
  readonly from: string
  readonly step: '1m' | '1h' | '24h'
  readonly groupBy: 'destination' | 'status' | 'all'
  readonly destination?: string
  readonly replay?: string
  readonly top: number
}

/** Counts by steps and groups. */
export async function readSteps(query: StepQuery, reading: Reading = {}): Promise<Answer<GroupedStats>> {
  const answer = await answered(admin.post('/v1/log/stats', { body: query, ...within(reading) }))
  if (!answer.ok) return answer
  const { from, to, times = [], groups = [], others = 0 } = answer.value
  return { ...answer, value: { from, to, times, groups, others } }
}

export type ReplayRequest = {
  readonly selection: ReplaySelection
  readonly perSecond?: number
  readonly again?: boolean
}

export function previewReplay(request: ReplayRequest, reading: Reading = {}) {
  return answered(admin.post('/v1/replays/preview', { body: request, ...within(reading) }))
}

export function startReplay(request: ReplayRequest) {
  return answered(admin.post('/v1/replays', { body: request, ...once() }))
}

export type ReplayQuery = {
  readonly cursor?: string | undefined
  readonly state?: ReplayState | '' | undefined
  readonly limit?: number
}

export function listReplays(query: ReplayQuery, reading: Reading = {}) {
  return answered(admin.get('/v1/replays', { query: filled(query), ...within(reading) }))
}

export function readReplay(id: string, reading: Reading = {}) {
  return answered(admin.get('/v1/replays/{replay}', { path: { replay: id }, ...within(reading) }))
}

export function stopReplay(id: string) {
  return answered(admin.post('/v1/replays/{replay}/stop', { path: { replay: id }, ...within() }))
}

export function resumeReplay(id: string) {
  return answered(admin.post('/v1/replays/{replay}/resume', { path: { replay: id }, ...within() }))
}

export function listSources(reading: Reading = {}) {
  return answered(admin.get('/v1/sources', within(reading)))
}

export function readSource(id: string, reading: Reading = {}) {
  return answered(admin.get('/v1/sources/{source}', { path: { source: id }, ...within(reading) }))
}

export function putSource(source: Source, change: Change) {
  const { id } = source
  return answered(
    admin.put('/v1/sources/{source}', { path: { source: id }, body: source, ...changing(change) }),
  )
}

export function listAudiences(reading: Reading = {}) {
  return answered(admin.get('/v1/audiences', within(reading)))
}

export type HistoryQuery = {
  readonly object?: string | undefined
  readonly cursor?: string | undefined
  readonly limit?: number
}

export function readHistory(query: HistoryQuery, reading: Reading = {}) {
  return answered(admin.get('/v1/catalog/history', { query: filled(query), ...within(reading) }))
}

export function readChange(revision: number, reading: Reading = {}) {
  return answered(
    admin.get('/v1/catalog/history/{revision}', { path: { revision: String(revision) }, ...within(reading) }),
  )
}

export function undoChange(revision: number, { isDryRun }: { readonly isDryRun: boolean }) {
  return answered(
    admin.post('/v1/catalog/history/{revision}/undo', {
      path: { revision: String(revision) },
      ...(isDryRun ? { query: { dryRun: true as const } } : {}),
      ...once(),
    }),
  )
}

export type AuditQuery = {
  readonly cursor?: string | undefined
  readonly replay?: string | undefined
  readonly limit?: number
}

export function readAudit(query: AuditQuery, reading: Reading = {}) {
  return answered(admin.get('/v1/audit', { query: filled(query), ...within(reading) }))
}

export function listTokens(reading: Reading = {}) {
  return answered(admin.get('/v1/tokens', within(reading)))
}

export type SessionQuery = { readonly cursor?: string | undefined; readonly limit?: number }

export function listSessions(query: SessionQuery, reading: Reading = {}) {
  return answered(admin.get('/v1/sessions', { query: filled(query), ...within(reading) }))
}

export function endSession(id: string) {
  return answered(admin.delete('/v1/sessions/{session}', { path: { session: id }, ...within() }))
}

/** Ends all sessions of a person, a token or a link. */
export function endSessionsOf(holder: string) {
  return answered(admin.delete('/v1/sessions/of/{holder}', { path: { holder }, ...within() }))
}

export function listLinks(reading: Reading = {}) {
  return answered(admin.get('/v1/links', within(reading)))
}

export type NewLink = {
  readonly name: string
  readonly label: string
  readonly rights: Grant[]
  readonly expiresAt: string
}

export function createLink(link: NewLink) {
  return answered(admin.post('/v1/links', { body: link, ...within() }))
}

export function revokeLink(id: string) {
  return answered(admin.delete('/v1/links/{link}', { path: { link: id }, ...within() }))
}

export type NewToken = {
  readonly name: string
  readonly right: Right
  readonly scope: Scope
  readonly expiresAt: string | null
}

export function createToken(token: NewToken) {
  return answered(admin.post('/v1/tokens', { body: token, ...within() }))
}

export function revokeToken(name: string) {
  return answered(admin.delete('/v1/tokens/{token}', { path: { token: name }, ...within() }))
}
