/**
 * The names of attributes. They are names of OpenTelemetry's semantic conventions for HTTP and messaging, and
 * names of Sluice's own. No attribute may identify a user or contain a secret. So the key of a record, the
 * path and the query of a hook, and the address of a client are not attributes.
 */
export const names = {
  method: 'http.request.method',
  route: 'http.route',
  status: 'http.response.status_code',
  resendCount: 'http.request.resend_count',
  scheme: 'url.scheme',
  serverAddress: 'server.address',
  serverPort: 'server.port',
  errorType: 'error.type',
  system: 'messaging.system',
  operation: 'messaging.operation.name',
  operationType: 'messaging.operation.type',
  topic: 'messaging.destination.name',
  partition: 'messaging.destination.partition.id',
  offset: 'messaging.kafka.offset',
  group: 'messaging.consumer.group.name',
  messageId: 'messaging.message.id',
  batchSize: 'messaging.batch.message_count',
  source: 'sluice.source.id',
  destination: 'sluice.destination.id',
  hook: 'sluice.hook.id',
  type: 'sluice.message.type',
  attempt: 'sluice.attempt',
  verdict: 'sluice.verdict',
  reason: 'sluice.reason',
  tier: 'sluice.retry.tier',
  due: 'sluice.retry.due',
} as const
