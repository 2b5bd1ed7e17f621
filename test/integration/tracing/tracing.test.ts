import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { basic, post } from '../../support/gateway.ts'
import { produce, randomPrefix, readAll, testKafka } from '../../support/kafka.ts'
import { type Collector, type ReceivedSpan, startCollector } from '../../support/otlp.ts'
import {
  answer,
  inTurn,
  type Receiver,
  type Script,
  startRawReceiver,
  startReceiver,
} from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { applyTopics, type SluiceProcess, startSluice, writeCatalog } from '../../support/worker-process.ts'
import { createModuleSpy } from './module-spy.ts'

let collector: Collector
const ended: (() => Promise<unknown> | void)[] = []

beforeEach(async () => {
  collector = await startCollector()
  ended.push(() => collector.stop())
})

afterEach(async () => {
  for (const end of ended.splice(0).toReversed()) await end()
})

type Scene = {
  prefix: string
  variables: Record<string, string>
  receiver: Receiver
  start: (role: 'gateway' | 'worker', own?: Record<string, string>) => Promise<SluiceProcess>
}

/**
 * Sets a scene with a source `shop` whose messages go to one hook. The hook has a key in its URL, and a
 * secret. Retries wait for a second.
 */
async function setScene(
  script: Script,
  { hook = {}, variables: own = {} }: { hook?: object; variables?: Record<string, string> } = {},
): Promise<Scene> {
  const prefix = randomPrefix()
  const receiver = await startReceiver(script)
  const catalog = writeCatalog({
    sources: [{ id: 'shop', writeKeys: ['KEY'], serverKeys: ['SERVER-KEY-of-24-letters'] }],
    destinations: [
      {
        id: 'crm',
        sources: ['shop'],
        sharedSecret: 'a-secret-of-sixteen',
        hooks: [{ id: 'main', url: `${receiver.origin}/hooks/path-key?token=query-key`, ...hook }],
      },
    ],
  })
  const variables = {
    SLUICE_KAFKA_BROKERS: testKafka().join(','),
    SLUICE_KAFKA_TOPIC_PREFIX: prefix,
    SLUICE_TOPICS_PARTITIONS: '3',
    SLUICE_CATALOG_FILE: catalog.path,
    SLUICE_RETRY_LADDER: '1s',
    SLUICE_RETRY_THEN: '1s',
    SLUICE_BREAKER_MIN_RESULTS: '10000',
    ...own,
  }
  ended.push(
    () => catalog.remove(),
    () => receiver.stop(),
  )
  await applyTopics(variables)
  async function start(role: 'gateway' | 'worker', more: Record<string, string> = {}) {
    const process = await startSluice({ ...variables, ...more }, { role })
    ended.push(() => (process.isRunning ? process.kill() : undefined))
    return process
  }
  return { prefix, variables, receiver, start }
}

const tracing = (origin: string): Record<string, string> => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: origin,
  OTEL_BSP_SCHEDULE_DELAY: '50',
})

const track = { type: 'track', userId: 'user-17', event: 'Bought', messageId: 'm1' }

async function sendTo(gateway: SluiceProcess, headers: Record<string, string> = {}): Promise<void> {
  const reply = await post(`http://127.0.0.1:${gateway.gatewayPort}/v1/track`, track, {
    ...basic('KEY'),
    ...headers,
  })
  expect(reply.status).toBe(200)
}

/** Returns the kind and the name of a span, without the topic prefix. */
function nameOf({ kind, name }: ReceivedSpan, prefix: string): string {
  return `${kind}: ${name.replace(prefix, '')}`
}

const upstream = { trace: '0af7651916cd43dd8448eb211c80319c', span: 'b7ad6b7169203331' }

describe('with a collector', () => {
  test('one trace leads from the gateway through Kafka, a failed attempt and a retry to the delivery', async () => {
    const { prefix, receiver, start } = await setScene(inTurn(answer(503), answer(200)), {
      variables: { ...tracing(collector.origin), SLUICE_DELIVERY_TRACEPARENT: 'true' },
    })
    const [gateway, worker] = await Promise.all([
      start('gateway', { OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20collector-key' }),
      start('worker', {
        OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test,service.name=deliveries',
      }),
    ])
    await sendTo(gateway)
    const spans = await collector.read(6)

    const path: string[] = []
    let at = spans.find(({ parentId }) => parentId === '')
    const byParent = (id: string, kind: ReceivedSpan['kind']): ReceivedSpan | undefined =>
      spans.find(({ parentId, kind: its }) => parentId === id && its === kind)
    for (
      let next = at;
      next !== undefined;
      next = byParent(next.spanId, next.kind === 'server' ? 'producer' : 'consumer')
    ) {
      at = next
      path.push(nameOf(next, prefix))
    }
    expect(path).toEqual([
      'server: POST /v1/track',
      'producer: send events',
      'consumer: process events',
      'consumer: process retry.1s',
    ])
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1)
    expect(spans).toHaveLength(6)
    const [first, retried] = spans
      .filter(({ kind }) => kind === 'consumer')
      .toSorted((a, b) => Number(a.startNs - b.startNs))
    const attempts = [first, retried].map((span) => byParent(span?.spanId ?? '', 'client'))
    const common = {
      'http.request.method': 'POST',
      'url.scheme': 'http',
      'server.address': '127.0.0.1',
      'server.port': receiver.port,
      'sluice.hook.id': 'main',
    }
    expect(attempts[0]).toMatchObject({
      isError: true,
      attributes: {
        ...common,
        'http.response.status_code': 503,
        'error.type': '503',
        'sluice.verdict': 'retry',
      },
    })
    expect(attempts[1]).toMatchObject({
      isError: false,
      attributes: {
        ...common,
        'http.response.status_code': 200,
        'http.request.resend_count': 1,
        'sluice.attempt': 2,
        'sluice.verdict': 'delivered',
      },
    })
    // The event `parked` has the time at which the retry is due.
    const parked = first?.events.find(({ name }) => name === 'parked')
    expect(parked?.attributes).toMatchObject({ 'sluice.reason': 'failed', 'sluice.retry.tier': '1s' })
    const dueNs = BigInt(Date.parse(String(parked?.attributes['sluice.retry.due']))) * 1_000_000n
    // It was parked between the end of its attempt and the end of its span. `due` is in whole milliseconds.
    const parkedNs = dueNs - 1_000_000_000n
    expect(parkedNs).toBeGreaterThanOrEqual((attempts[0]?.endNs ?? 0n) - 1_000_000n)
    expect(parkedNs).toBeLessThanOrEqual((first?.endNs ?? 0n) + 1_000_000n)
    expect(retried?.events.map(({ name }) => name)).toEqual(['delivered'])
    expect(first?.attributes).toMatchObject({
      'messaging.system': 'kafka',
      'messaging.operation.type': 'process',
      'messaging.destination.name': `${prefix}events`,
      'messaging.consumer.group.name': `${prefix}workers`,
      'messaging.message.id': 'm1',
      'sluice.source.id': 'shop',
      'sluice.destination.id': 'crm',
    })

    // Each request has the id of its span in `traceparent`.
    const traceId = String(first?.traceId)
    expect(receiver.requests.map(({ headers }) => headers['traceparent'])).toEqual(
      attempts.map((span) => `00-${traceId}-${span?.spanId}-01`),
    )
    expect(
      spans.filter(({ kind }) => kind === 'server' || kind === 'producer').map(({ service }) => service),
    ).toEqual(['sluice-gateway', 'sluice-gateway'])
    expect(first?.resource).toMatchObject({
      'service.name': 'deliveries',
      'deployment.environment.name': 'test',
    })
    expect(collector.requests.map((request) => request.path)).toContain('/v1/traces')
    expect(collector.requests.map(({ headers }) => headers.authorization)).toContain('Bearer collector-key')

    const lines = await until('both lines are written', () => {
      const found = worker.log.filter(({ msg }) => msg === 'attempt')
      return found.length === 2 ? found : undefined
    })
    expect(lines.map((line) => line['traceId'])).toEqual([traceId, traceId])
    await until(
      'the fate of the spans is counted',
      async () => (await worker.metric('sluice_trace_spans_total', { fate: 'exported' })) === 4,
    )

    const all = JSON.stringify(spans, (_key, value: unknown) =>
      typeof value === 'bigint' ? String(value) : value,
    )
    for (const secret of ['user-17', 'KEY', 'path-key', 'query-key', 'a-secret-of-sixteen', 'collector-key'])
      expect(all).not.toContain(secret)
  })

  test('what an upstream producer or a client began is gone on with, to the dead letters too, and endpoints hear nothing of it', async () => {
    const { prefix, receiver, start } = await setScene(inTurn(answer(503), answer(400)), {
      variables: tracing(collector.origin),
    })
    await start('worker')
    const given = {
      traceparent: `00-${upstream.trace}-${upstream.span}-01`,
      tracestate: 'vendor=a1,other=b2',
    }
    await produce(`${prefix}events`, [
      { key: 'u1', value: JSON.stringify(track), headers: { 'source-id': 'shop', ...given } },
    ])
    const [letter] = await readAll(`${prefix}dead-letters`, { count: 1 })
    const [parked] = await readAll(`${prefix}retry.1s`, { count: 1 })
    const spans = await collector.read(4)
    const [first, second] = spans
      .filter(({ kind }) => kind === 'consumer')
      .toSorted((a, b) => Number(a.startNs - b.startNs))
    expect(first).toMatchObject({
      traceId: upstream.trace,
      parentId: upstream.span,
      traceState: given.tracestate,
    })
    expect(second).toMatchObject({ traceId: upstream.trace, parentId: first?.spanId, isError: true })
    expect(second?.attributes['error.type']).toBe('failed_for_good')
    expect(parked?.headers).toMatchObject({
      traceparent: `00-${upstream.trace}-${first?.spanId}-01`,
      tracestate: given.tracestate,
    })
    expect(letter?.headers).toMatchObject({
      traceparent: `00-${upstream.trace}-${second?.spanId}-01`,
      tracestate: given.tracestate,
    })
    expect(receiver.requests).toHaveLength(2)
    expect(
      receiver.requests.filter(({ headers }) => 'traceparent' in headers || 'tracestate' in headers),
    ).toEqual([])
  })

  test('a deletion that a server asks for leads to the delete', async () => {
    const { prefix, receiver, start } = await setScene(answer(200), { variables: tracing(collector.origin) })
    const [gateway] = await Promise.all([start('gateway'), start('worker')])
    const reply = await post(
      `http://127.0.0.1:${gateway.gatewayPort}/v1/deletions`,
      { userId: 'user-17' },
      { authorization: 'Bearer SERVER-KEY-of-24-letters' },
    )
    expect(reply.status).toBe(200)
    const spans = await collector.read(4)
    expect(receiver.requests).toHaveLength(1)
    expect(spans.map((span) => nameOf(span, prefix)).toSorted()).toEqual([
      'client: POST',
      'consumer: process deletions',
      'producer: send deletions',
      'server: POST /v1/deletions',
    ])
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1)
    expect(JSON.stringify(spans.map(({ attributes }) => attributes))).not.toMatch(/user-17|SERVER-KEY/)
  })

  test('a record that nothing can be made of is a span with its reason, and a dead letter of its trace', async () => {
    const { prefix, start } = await setScene(answer(200), { variables: tracing(collector.origin) })
    await start('worker')
    const traceparent = `00-${upstream.trace}-${upstream.span}-01`
    await produce(`${prefix}events`, [
      { key: 'u1', value: JSON.stringify(track), headers: { 'source-id': 'nobody', traceparent } },
    ])
    const [letter] = await readAll(`${prefix}dead-letters`, { count: 1 })
    expect(letter?.headers['traceparent']).toBe(traceparent)
    const [span] = await collector.read(1)
    expect(span).toMatchObject({ traceId: upstream.trace, parentId: upstream.span, isError: true })
    expect(span?.attributes['error.type']).toBe('unknown_source')
  })

  test('a trace that its beginner does not record is passed on, and not exported', async () => {
    const { receiver, start } = await setScene(answer(200), {
      variables: { ...tracing(collector.origin), SLUICE_DELIVERY_TRACEPARENT: 'true' },
    })
    const [gateway, worker] = await Promise.all([start('gateway'), start('worker')])
    await sendTo(gateway, { traceparent: `00-${upstream.trace}-${upstream.span}-00` })
    await until('it is delivered', () => receiver.requests.length === 1)
    expect(receiver.requests[0]?.headers['traceparent']).toMatch(
      new RegExp(`^00-${upstream.trace}-[0-9a-f]{16}-00$`),
    )
    await worker.terminate()
    await gateway.terminate()
    expect(collector.spans).toEqual([])
    expect(worker.log.filter((line) => 'traceId' in line)).toEqual([])
  })

  test('a share of 0 records nothing, though a client asks for it', async () => {
    const { receiver, start } = await setScene(answer(200), {
      variables: {
        ...tracing(collector.origin),
        OTEL_TRACES_SAMPLER: 'traceidratio',
        OTEL_TRACES_SAMPLER_ARG: '0',
      },
    })
    const [gateway, worker] = await Promise.all([start('gateway'), start('worker')])
    await sendTo(gateway, { traceparent: `00-${upstream.trace}-${upstream.span}-01` })
    await until('it is delivered', () => receiver.requests.length === 1)
    await Promise.all([worker.terminate(), gateway.terminate()])
    expect(collector.spans).toEqual([])
  })

  test('a hook that has a traceparent of its own in the catalog keeps it', async () => {
    const own = `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`
    const { receiver, prefix, start } = await setScene(answer(200), {
      hook: { headers: { TraceParent: own } },
      variables: { ...tracing(collector.origin), SLUICE_DELIVERY_TRACEPARENT: 'true' },
    })
    await start('worker')
    await produce(`${prefix}events`, [
      { key: 'u1', value: JSON.stringify(track), headers: { 'source-id': 'shop' } },
    ])
    await until('it is delivered', () => receiver.requests.length === 1)
    expect(receiver.requests[0]?.headers['traceparent']).toBe(own)
  })

  test('the last spans are exported at the end', async () => {
    const { receiver, prefix, start } = await setScene(answer(200), {
      variables: { ...tracing(collector.origin), OTEL_BSP_SCHEDULE_DELAY: '600000' },
    })
    const worker = await start('worker')
    await produce(`${prefix}events`, [
      { key: 'u1', value: JSON.stringify(track), headers: { 'source-id': 'shop' } },
    ])
    await until('it is delivered', () => receiver.requests.length === 1)
    expect(collector.spans).toEqual([])
    expect((await worker.terminate()).code).toBe(0)
    expect(collector.spans.map((span) => nameOf(span, prefix)).toSorted()).toEqual([
      'client: POST',
      'consumer: process events',
    ])
  })
})

describe('a collector that takes nothing', () => {
  test('holds up no delivery and no end, is told once, and what it costs is counted', async () => {
    const silent = await startRawReceiver()
    ended.push(() => silent.stop())
    const { receiver, prefix, start } = await setScene(answer(200), {
      variables: {
        ...tracing(silent.origin),
        OTEL_EXPORTER_OTLP_TIMEOUT: '300',
        OTEL_BSP_MAX_QUEUE_SIZE: '20',
        OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '10',
      },
    })
    const worker = await start('worker')
    const messages = Array.from({ length: 300 }, (_, nth) => ({
      key: `u${nth}`,
      value: JSON.stringify({ ...track, messageId: `m${nth}` }),
      headers: { 'source-id': 'shop' },
    }))
    await produce(`${prefix}events`, messages)
    await until('all are delivered', () => receiver.requests.length === messages.length)
    const spans = (fate: string): Promise<number> => worker.metric('sluice_trace_spans_total', { fate })
    await until('some exports have failed', async () => (await spans('failed')) >= 20)
    await until(
      'all spans are accounted for',
      async () => (await spans('failed')) + (await spans('dropped')) === 600,
    )
    expect(await spans('dropped')).toBeGreaterThan(300)
    expect(await spans('exported')).toBe(0)
    const { code, tookMs } = await worker.terminate()
    expect(code).toBe(0)
    expect(tookMs).toBeLessThan(9_000)
    const told = worker.log.filter(({ msg }) => msg.startsWith('spans could not be exported'))
    // The log has the first failure of each kind and, at the end, the number of failures.
    expect(told.length).toBeGreaterThanOrEqual(2)
    expect(told.length).toBeLessThanOrEqual(4)
    expect(told[0]).toMatchObject({ level: 'warn', endpoint: `${silent.origin}/` })
  })

  test('ends the process no later than its deadline', async () => {
    const silent = await startRawReceiver()
    ended.push(() => silent.stop())
    const { receiver, prefix, start } = await setScene(answer(200), {
      variables: { ...tracing(silent.origin), OTEL_BSP_SCHEDULE_DELAY: '600000' },
    })
    const worker = await start('worker')
    await produce(`${prefix}events`, [
      { key: 'u1', value: JSON.stringify(track), headers: { 'source-id': 'shop' } },
    ])
    await until('it is delivered', () => receiver.requests.length === 1)
    const { code, tookMs } = await worker.terminate()
    expect(code).toBe(0)
    expect(tookMs).toBeLessThan(9_000)
    expect(worker.log.some(({ msg }) => msg.startsWith('the last spans are lost'))).toBe(true)
  })
})

describe('variables that can not be followed', () => {
  test('are named, and nothing is traced; deliveries go on', async () => {
    const { receiver, prefix, start } = await setScene(answer(200), {
      variables: { ...tracing(collector.origin), OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
    })
    const worker = await start('worker')
    const line = worker.log.find(({ msg }) =>
      msg.startsWith('tracing is off: some variables of OpenTelemetry'),
    )
    expect(line?.level).toBe('error')
    expect(JSON.stringify(line?.['faults'])).toContain('OTEL_EXPORTER_OTLP_PROTOCOL: set http/protobuf')
    await produce(`${prefix}events`, [
      { key: 'u1', value: JSON.stringify(track), headers: { 'source-id': 'shop' } },
    ])
    await until('it is delivered', () => receiver.requests.length === 1)
  })
})

describe('without an endpoint', () => {
  test.each<[string, Record<string, string>, boolean]>([
    ['nothing of OpenTelemetry is loaded, and no record or request has a header of it', {}, false],
    ['the same with OTEL_SDK_DISABLED', { OTEL_SDK_DISABLED: 'true' }, false],
    ['while with one it is loaded, and records have the header', {}, true],
  ])('%s', async (_what, own, isOn) => {
    const spy = createModuleSpy()
    ended.push(() => spy.remove())
    const isEndpointSet = isOn || 'OTEL_SDK_DISABLED' in own
    const { prefix, receiver, start } = await setScene(inTurn(answer(503), answer(200)), {
      variables: {
        ...spy.variables,
        SLUICE_DELIVERY_TRACEPARENT: 'true',
        ...(isEndpointSet && tracing(collector.origin)),
        ...own,
      },
    })
    const [gateway, worker] = await Promise.all([start('gateway'), start('worker')])
    await sendTo(gateway, { traceparent: `00-${upstream.trace}-${upstream.span}-01` })
    await until('it is delivered', () => receiver.requests.length === 2)
    const [event] = await readAll(`${prefix}events`, { count: 1 })
    const [parked] = await readAll(`${prefix}retry.1s`, { count: 1 })
    const names = [
      ...Object.keys(event?.headers ?? {}),
      ...Object.keys(parked?.headers ?? {}),
      ...receiver.requests.flatMap(({ headers }) => Object.keys(headers)),
    ]
    expect(names.filter((name) => name === 'traceparent')).toHaveLength(isOn ? 4 : 0)
    const log = await worker.wholeLog()
    expect(log.some((line) => 'traceId' in line)).toBe(isOn)
    expect(log.some(({ msg }) => msg === 'tracing is on')).toBe(isOn)
    if (isOn) expect(spy.loaded().length).toBeGreaterThan(10)
    else expect(spy.loaded()).toEqual([])
  })
})
