import type {
  Answer,
  Condition as Conditions,
  Destination,
  ListedDestination,
  LogDelivery,
  LogRecord,
  Replay,
} from '../../../clients/admin/client.js'

// The shapes of the admin API that the pages name: those of its document, by which the client is generated.

export type {
  AudienceDestination,
  AudienceSpace,
  Attention,
  AuditEntry,
  BulkDone,
  BulkOrder,
  CatalogChange,
  DeadLetterGroup,
  FoundEvent,
  Destination,
  FieldChange,
  HeldSession,
  HookTrial,
  Link as ListedLink,
  HookState,
  ListedDestination,
  ListedSource,
  ListedToken,
  LogMinute,
  LogRecord,
  MessageRequest,
  Previewed,
  Replay,
  ReplayPreview,
  ReplaySelection,
  Scope,
  SigningKey,
  Source,
  Status,
} from '../../../clients/admin/client.js'

/** What a customer's link allows. */
export type Grant = 'see' | 'answers' | 'replay' | 'test' | 'edit_url' | 'rotate'
export type Right = 'read' | 'operate' | 'admin'
export type Condition = Conditions
export type State = ListedDestination['state']
export type Hook = Destination['hooks'][number]
export type DestinationHealth = Answer<'get', '/v1/destinations/{destination}/health'>
export type LogKind = LogRecord['kind']
export type Delivery = LogDelivery
export type DeliveryState = LogDelivery['state']
export type GroupedStats = Required<
  Pick<Answer<'post', '/v1/log/stats'>, 'from' | 'to' | 'times' | 'groups' | 'others'>
>
export type Undone = Answer<'post', '/v1/catalog/history/{revision}/undo'>
export type Tested = Answer<'post', '/v1/destinations/{destination}/test'>
export type MessageContent = Answer<'get', '/v1/log/messages/{message}/content'>
export type SourceEvents = Answer<'get', '/v1/sources/{source}/events'>
export type ReplayState = Replay['state']
