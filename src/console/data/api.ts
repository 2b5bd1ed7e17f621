import { type Answer, call } from './answer.ts'
import type {
  AuditEntry,
  CatalogChange,
  Changed,
  Destination,
  DestinationHealth,
  DestinationList,
  GroupedStats,
  ListedSource,
  LogPage,
  LogSearch,
  MessageLog,
  Minute,
  NewToken,
  Ordered,
  Preview,
  Replay,
  ReplayRequest,
  Rotated,
  Source,
  Status,
  Tested,
  Token,
} from './types.ts'

// One function for each call of the admin API that the pages make (docs/admin-api.md).

type Ask<T> = Promise<Answer<T>>
type Reading = { readonly signal?: AbortSignal }
/** The version that a change expects. Absent: the object must not exist yet. */
type Change = { readonly version: string | undefined; readonly isDryRun: boolean }

const idOf = encodeURIComponent

/** A key for requests that must not be carried out twice if their answer is lost. */
function onceHeaders(): Record<string, string> {
  return { 'Idempotency-Key': crypto.randomUUID() }
}

function changeCall({ version, isDryRun }: Change) {
  const headers = version === undefined ? { 'If-None-Match': '*' } : { 'If-Match': version }
  return { headers, ...(isDryRun ? { query: { dryRun: 'true' } } : {}) }
}

export function readStatus(reading: Reading = {}): Ask<Status> {
  return call('/v1/status', reading)
}

export type ListQuery = Readonly<
  Partial<Record<'search' | 'state' | 'label' | 'sort' | 'cursor' | 'limit' | 'source', string>>
>

export function listDestinations(query: ListQuery, reading: Reading = {}): Ask<DestinationList> {
  return call('/v1/destinations', { query, ...reading })
}

export function readHealth(id: string, reading: Reading = {}): Ask<DestinationHealth> {
  return call(`/v1/destinations/${idOf(id)}/health`, reading)
}

export function readDestination(
  id: string,
  reading: Reading = {},
): Ask<{ readonly version: number; readonly destination: Destination }> {
  return call(`/v1/destinations/${idOf(id)}`, reading)
}

export function putDestination(destination: Destination, change: Change): Ask<Changed> {
  return call(`/v1/destinations/${idOf(destination.id)}`, {
    method: 'PUT',
    body: destination,
    ...changeCall(change),
  })
}

export function patchDestination(id: string, patch: object, change: Change): Ask<Changed> {
  return call(`/v1/destinations/${idOf(id)}`, { method: 'PATCH', body: patch, ...changeCall(change) })
}

export function removeDestination(id: string, change: Change): Ask<Changed> {
  return call(`/v1/destinations/${idOf(id)}`, { method: 'DELETE', ...changeCall(change) })
}

export function testDestination(id: string, hook: string | undefined): Ask<Tested> {
  return call(`/v1/destinations/${idOf(id)}/test`, {
    method: 'POST',
    body: hook === undefined ? {} : { hook },
  })
}

/** Resumes a destination that Sluice has paused. */
export function resumeDestination(id: string): Ask<{ readonly workersKnowWithinSeconds: number }> {
  return call(`/v1/destinations/${idOf(id)}/resume`, { method: 'POST', body: {} })
}

export function retryNow(
  id: string,
  order: { readonly messageId?: string; readonly dryRun?: boolean },
): Ask<Ordered> {
  return call(`/v1/destinations/${idOf(id)}/retry-now`, { method: 'POST', body: order })
}

export function dropWaiting(id: string, order: { readonly dryRun: boolean }): Ask<Ordered> {
  return call(`/v1/destinations/${idOf(id)}/drop`, { method: 'POST', body: { waiting: true, ...order } })
}

/** Makes a new secret. `endsAt` is when the old one ends by itself. Absent: when somebody ends it. */
export function rotateSecret(id: string, endsAt: string | undefined): Ask<Rotated> {
  return call(`/v1/destinations/${idOf(id)}/rotate`, {
    method: 'POST',
    body: endsAt === undefined ? {} : { oldSecretEndsAt: endsAt },
    headers: onceHeaders(),
  })
}

export function endOldSecret(id: string): Ask<Rotated> {
  return call(`/v1/destinations/${idOf(id)}/rotate/end`, { method: 'POST', headers: onceHeaders() })
}

export function readMessage(id: string, reading: Reading = {}): Ask<MessageLog> {
  return call(`/v1/log/messages/${idOf(id)}`, reading)
}

export function searchLog(search: LogSearch, reading: Reading = {}): Ask<LogPage> {
  return call('/v1/log/search', { method: 'POST', body: search, ...reading })
}

/** Counts by the minute, with durations. */
export function readMinutes(
  range: { readonly from: string; readonly destination?: string },
  reading: Reading = {},
): Ask<{ readonly from: string; readonly to: string; readonly minutes: readonly Minute[] }> {
  return call('/v1/log/stats', { method: 'POST', body: range, ...reading })
}

export type StepQuery = {
  readonly from: string
  readonly step: '1m' | '5m' | '15m' | '30m' | '1h'
  readonly groupBy?: 'destination' | 'status'
  readonly destination?: string
  readonly top?: number
}

/** Counts by steps and groups. */
export function readSteps(query: StepQuery, reading: Reading = {}): Ask<GroupedStats> {
  return call('/v1/log/stats', { method: 'POST', body: query, ...reading })
}

export function previewReplay(request: ReplayRequest, reading: Reading = {}): Ask<Preview> {
  return call('/v1/replays/preview', { method: 'POST', body: request, ...reading })
}

export function startReplay(request: ReplayRequest): Ask<Replay> {
  return call('/v1/replays', { method: 'POST', body: request, headers: onceHeaders() })
}

export function listReplays(
  query: { readonly cursor?: string; readonly state?: string; readonly limit?: string },
  reading: Reading = {},
): Ask<{ readonly replays: readonly Replay[]; readonly cursor: string | null }> {
  return call('/v1/replays', { query, ...reading })
}

export function readReplay(id: string, reading: Reading = {}): Ask<Replay> {
  return call(`/v1/replays/${idOf(id)}`, reading)
}

export function stopReplay(id: string): Ask<Replay> {
  return call(`/v1/replays/${idOf(id)}/stop`, { method: 'POST' })
}

export function resumeReplay(id: string): Ask<Replay> {
  return call(`/v1/replays/${idOf(id)}/resume`, { method: 'POST' })
}

export function listSources(reading: Reading = {}): Ask<{ readonly sources: readonly ListedSource[] }> {
  return call('/v1/sources', reading)
}

export function readSource(
  id: string,
  reading: Reading = {},
): Ask<{ readonly version: number; readonly source: Source }> {
  return call(`/v1/sources/${idOf(id)}`, reading)
}

export function putSource(source: Source, change: Change): Ask<Changed> {
  return call(`/v1/sources/${idOf(source.id)}`, { method: 'PUT', body: source, ...changeCall(change) })
}

export type HistoryQuery = {
  readonly object?: string
  readonly cursor?: string
  readonly limit?: string
}

export function readHistory(
  query: HistoryQuery,
  reading: Reading = {},
): Ask<{ readonly changes: readonly CatalogChange[]; readonly cursor: string | null }> {
  return call('/v1/catalog/history', { query, ...reading })
}

export function readChange(revision: number, reading: Reading = {}): Ask<CatalogChange> {
  return call(`/v1/catalog/history/${revision}`, reading)
}

export function undoChange(
  revision: number,
  { isDryRun }: { readonly isDryRun: boolean },
): Ask<{ readonly revision: number; readonly objects: readonly ObjectsOfUndo[] }> {
  return call(`/v1/catalog/history/${revision}/undo`, {
    method: 'POST',
    headers: onceHeaders(),
    ...(isDryRun ? { query: { dryRun: 'true' } } : {}),
  })
}
type ObjectsOfUndo = { readonly object: string; readonly what: string }

export type AuditQuery = Readonly<Partial<Record<'from' | 'to' | 'cursor' | 'limit' | 'replay', string>>>

export function readAudit(
  query: AuditQuery,
  reading: Reading = {},
): Ask<{
  readonly entries: readonly AuditEntry[]
  readonly cursor: string | null
  readonly completeSince: string | null
}> {
  return call('/v1/audit', { query, ...reading })
}

export function listTokens(
  reading: Reading = {},
): Ask<{ readonly tokens: readonly Token[]; readonly usesKnownSince: string }> {
  return call('/v1/tokens', reading)
}

export function createToken(token: NewToken): Ask<Token & { readonly token: string }> {
  return call('/v1/tokens', { method: 'POST', body: token })
}

export function revokeToken(name: string): Ask<unknown> {
  return call(`/v1/tokens/${idOf(name)}`, { method: 'DELETE' })
}
