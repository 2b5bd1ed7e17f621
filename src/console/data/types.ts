// The shapes of schemas/admin-openapi.json that the pages use.

export type Right = 'read' | 'operate' | 'admin'
export type Scope =
  | 'all'
  | { readonly label?: string | undefined; readonly destinations?: readonly string[] | undefined }

export type Condition =
  | 'failing'
  | 'gone'
  | 'auto_paused'
  | 'paced'
  | 'paused'
  | 'unknown'
  | 'healthy'
  | 'off'
export type State = 'on' | 'off' | 'paused' | 'auto_paused'

export type Attention = {
  readonly destination: string
  readonly name: string
  readonly condition: Condition
  readonly since: string | null
  readonly why: string
}

export type Status = {
  readonly asOf: string
  readonly workers: readonly { readonly name: string; readonly version: string | null }[]
  readonly units: { readonly told: number; readonly of: number } | null
  readonly lag: { readonly records: number; readonly oldestAt: string | null } | null
  readonly retrying: number | null
  readonly waiting: number | null
  readonly destinations: Readonly<Record<Condition | 'total', number>>
  readonly attention: readonly Attention[]
  readonly needAttention: number
  readonly unknown: readonly string[]
}

export type Health = {
  readonly condition: Condition
  readonly since: string | null
  readonly why: string
  readonly nextTryAt: string | null
  readonly secretEndsAt: string | null
  readonly asOf: string | null
  readonly waiting: number | null
  readonly oldestWaitingSince: string | null
  readonly drainedInSeconds: number | null
  readonly inFlightLimit: number | null
  readonly perSecondLimit: number | null
  readonly isLimitLowered: boolean | null
}

export type FailingHook = {
  readonly since: string
  readonly isBreakerOpen: boolean
  readonly answers: readonly { readonly outcome: string; readonly count: number }[]
  readonly lastFailureAt: string | null
  readonly lastSuccessAt: string | null
}

export type HookHealth = {
  readonly id: string
  readonly origin: string
  readonly isGone: boolean
  readonly failing: FailingHook | null
}

export type Listed = {
  readonly id: string
  readonly name: string
  readonly state: State
  readonly labels: Readonly<Record<string, string>>
  readonly sources: readonly string[]
  readonly hooks: readonly HookHealth[]
  readonly health: Health
}

export type DestinationList = {
  readonly destinations: readonly Listed[]
  readonly cursor: string | null
  readonly total: number
  readonly asOf: string
}

export type DestinationHealth = {
  readonly destination: string
  readonly name: string
  readonly state: State
  readonly asOf: string
  readonly health: Health
  readonly hooks: readonly HookHealth[]
}

export type Hook = {
  readonly url: string
  readonly id?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** A destination as it is in the catalog. The fields are those of docs/catalog.md. */
export type Destination = {
  readonly id: string
  readonly name?: string | undefined
  readonly state?: 'on' | 'off' | 'paused' | undefined
  readonly sources: readonly string[]
  readonly hooks: readonly Hook[]
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly sharedSecret?: string | undefined
  readonly nextSharedSecret?: string | undefined
  readonly sharedSecretEndsAt?: string | undefined
  readonly [field: string]: unknown
}

export type Source = {
  readonly id: string
  readonly name?: string | undefined
  readonly kind?: 'events' | 'audiences' | undefined
  readonly enabled?: boolean | undefined
  readonly writeKeys?: readonly string[] | undefined
  readonly serverKeys?: readonly string[] | undefined
  readonly [field: string]: unknown
}

export type ListedSource = {
  readonly id: string
  readonly name: string
  readonly kind: 'events' | 'audiences'
  readonly enabled: boolean
  readonly destinations: number
}

export type Changed = {
  readonly what: 'created' | 'changed' | 'removed' | 'unchanged'
  readonly version: number | null
  readonly revision: number
}

export type LogKind =
  | 'attempted'
  | 'parked'
  | 'delivered'
  | 'dead'
  | 'superseded'
  | 'suppressed'
  | 'omitted'
  | 'filtered'

export type LogRecord = {
  readonly at: string
  readonly kind: LogKind
  readonly isEnd: boolean
  readonly weight: number
  readonly destination: string | null
  readonly hook: string | null
  readonly source: string | null
  readonly messageId: string | null
  readonly messageType: string | null
  readonly origin: { readonly topic: string; readonly partition: number; readonly offset: number }
  readonly attempt: number
  readonly verdict: 'delivered' | 'retry' | 'final' | null
  readonly outcome: string | null
  readonly status: number | null
  readonly durationMs: number | null
  readonly reason: string | null
  readonly error: string | null
  readonly dueAt: string | null
  readonly firstSeenAt: string
  readonly user: string | null
  readonly replay: string | null
  readonly answer: string | null
}

export type DeliveryState = Exclude<LogKind, 'attempted' | 'parked'> | 'waiting' | 'under_way'

export type Delivery = {
  readonly destination: string | null
  readonly state: DeliveryState
  readonly dueAt: string | null
  readonly records: readonly LogRecord[]
}

export type MessageLog = { readonly messageId: string; readonly deliveries: readonly Delivery[] }

export type LogSearch = {
  readonly from?: string | undefined
  readonly to?: string | undefined
  readonly destination?: string | undefined
  readonly source?: string | undefined
  readonly user?: string | undefined
  readonly status?: number | undefined
  readonly kinds?: readonly LogKind[] | undefined
  readonly reason?: string | undefined
  readonly isFailed?: boolean | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

export type LogPage = {
  readonly from: string
  readonly to: string
  readonly records: readonly LogRecord[]
  readonly cursor: string | null
}

export type Minute = {
  readonly minute: string
  readonly succeeded: number
  readonly failed: number
  readonly delivered: number
  readonly dead: number
  readonly durationMs: { readonly p50: number; readonly p95: number; readonly p99: number } | null
}

export type GroupedStats = {
  readonly from: string
  readonly to: string
  readonly times: readonly string[]
  readonly groups: readonly {
    readonly key: string
    readonly succeeded: readonly number[]
    readonly failed: readonly number[]
    readonly dead: readonly number[]
  }[]
  readonly others: number
}

export type Selection = {
  readonly of: 'dead-letters' | 'events'
  readonly destination?: string | undefined
  readonly source?: string | undefined
  readonly reason?: string | undefined
  readonly messageId?: string | undefined
  readonly from?: string | undefined
  readonly to?: string | undefined
}

export type ReplayRequest = {
  readonly selection: Selection
  readonly perSecond?: number | undefined
  readonly again?: boolean | undefined
  readonly all?: boolean | undefined
}

export type Counted = {
  readonly records: number
  readonly bytes: number
  readonly leftOut: Readonly<Record<string, number>>
}

export type DeadGroup = {
  readonly destination: string | null
  readonly reason: string | null
  readonly records: number
  readonly bytes: number
}

export type Preview = {
  readonly counted: Counted
  readonly groups: readonly DeadGroup[]
  readonly isComplete: boolean
}

export type ReplayState = 'waiting' | 'running' | 'delivering' | 'stopped' | 'done'

export type Replay = {
  readonly id: string
  readonly state: ReplayState
  readonly detail: string
  readonly selection: Selection
  readonly perSecond: number
  readonly again: boolean
  readonly createdBy: string
  readonly createdAt: string
  readonly counted: Counted | null
  readonly sent: Counted
  readonly read: { readonly offsets: number; readonly of: number }
  readonly waiting?: number | null | undefined
  readonly secondsLeft?: number | null | undefined
  readonly owner?: string | null | undefined
  readonly notedAt?: string | null | undefined
}

export type TestedHook = {
  readonly hook: string
  readonly origin: string
  readonly verdict: 'delivered' | 'retry' | 'final'
  readonly outcome: string
  readonly status: number | null
  readonly durationMs: number
  readonly answer: string | null
  readonly advice: string | null
}

export type Tested = {
  readonly messageId: string
  readonly isAccepted: boolean
  readonly verdict: 'delivered' | 'retry' | 'dead_letter' | null
  readonly hooks: readonly TestedHook[]
  readonly notes: readonly string[]
}

export type Ordered = {
  readonly isPreview: boolean
  readonly waiting: number | null
  readonly workersKnowWithinSeconds?: number | undefined
}

export type Rotated = {
  readonly state: 'first' | 'both' | 'ended'
  readonly secret: string | null
}

export type FieldChange = { readonly field: string; readonly before: unknown; readonly after: unknown }
export type ObjectChange = {
  readonly object: string
  readonly what: 'created' | 'changed' | 'removed'
  readonly fields?: readonly FieldChange[] | undefined
}

export type CatalogChange = {
  readonly revision: number
  readonly at: string
  readonly by: string
  readonly undoes: number | null
  readonly count: number
  readonly objects: readonly ObjectChange[]
  readonly fields?: readonly FieldChange[] | null | undefined
}

export type AuditEntry = {
  readonly at: string
  readonly lastAt: string
  readonly count: number
  readonly by: string
  readonly action: string
  readonly replay: string | null
  readonly destination: string | null
  readonly records: number | null
  readonly detail: string
}

export type Token = {
  readonly name: string
  readonly right: Right
  readonly scope: Scope
  readonly expiresAt: string | null
  readonly createdBy: string | null
  readonly createdAt: string | null
  readonly hasEnded: boolean
  readonly origin: 'file' | 'topic'
  readonly lastUsedAt: string | null
}

export type NewToken = {
  readonly name: string
  readonly right: Right
  readonly scope: Scope
  readonly expiresAt?: string | null | undefined
}
