import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type CountingReceiver, startCountingReceiver } from '../support/counting-receiver.ts'
import { metricsTable } from '../../scripts/metrics-table.ts'
import { expelMembers } from '../support/expel-members.ts'
import { readAll } from '../support/kafka.ts'
import { parseMetrics } from '../support/metrics-text.ts'
import { until } from '../support/until.ts'
import { type LogLine, type SluiceProcess, startSluice } from '../support/worker-process.ts'
import { newIds, unhurried, type Scene, setScene, setShopScene } from './scene.ts'

const secret = 'shared-secret-of-crm'
const headerSecret = 'token-of-a-header'
const eventName = 'Order Completed'

let receiver: CountingReceiver
let scene: Scene
let worker: SluiceProcess

const delivered = newIds(40)
const failed = newIds(30)
const hung = newIds(5)
const unknown = newIds(2)

function endpoint(id: string, path: string): object {
  return {
    id,
    sources: [id],
    sharedSecret: secret,
    hooks: [{ id: `${id}-hook`, url: receiver.url(path), headers: { Authorization: headerSecret } }],
  }
}

/** So long that no request of the others takes as long, also on a machine that stands still for a moment. */
const timeoutS = 5
/** The times between which the messages that wait for an hour were parked. */
let [parkedFromMs, parkedToMs] = [0, 0]

/**
 * Starts one worker for all tests that only read. The worker has delivered messages, parked messages for 1 s
 * and for 1 h, and had requests that hung. Some of its messages had no destination or an unknown source.
 */
beforeAll(async () => {
  receiver = await startCountingReceiver()
  await receiver.behave('/failing', { status: 500 })
  await receiver.behave('/hung', { isHung: true })
  scene = await setScene({
    catalog: {
      sources: ['healthy', 'failing', 'hung', 'unheard'].map((id) => ({ id })),
      destinations: [
        endpoint('healthy', '/healthy'),
        endpoint('failing', '/failing'),
        endpoint('hung', '/hung'),
      ],
    },
    variables: {
      ...unhurried,
      SLUICE_RETRY_LADDER: '1s,1h',
      SLUICE_RETRY_THEN: '1h',
      SLUICE_DELIVERY_TIMEOUT: `${timeoutS}s`,
    },
  })
  parkedFromMs = Date.now()
  worker = await startSluice(scene.variables)
  await scene.send('healthy', delivered)
  await scene.send('failing', failed)
  await scene.send('hung', hung)
  await scene.send('unheard', newIds(3))
  await scene.send('nobody', unknown)
  const parkedForAnHour = failed.length + hung.length
  await until('all that fails waits for an hour', async () => {
    return (await worker.metric('sluice_parked_records', { tier: '1h' })) === parkedForAnHour
  })
  parkedToMs = Date.now()
  await until(
    'its head is known',
    async () => (await worker.metric('sluice_oldest_due_timestamp_seconds')) > 0,
  )
  await until('all is counted', async () => {
    return (await worker.metric('sluice_deliveries_total', { verdict: 'delivered' })) === delivered.length
  })
  await until('none is held', async () => (await worker.metric('sluice_held_records')) === 0)
})

afterAll(async () => {
  await worker.kill()
  scene.close()
  await receiver.stop()
})

const metricOf = (name: string, labels?: Record<string, string>) => worker.metric(name, labels)
const urlOf = (path: string) => `http://127.0.0.1:${worker.httpPort}${path}`
const getText = async (path: string) => (await fetch(urlOf(path))).text()

/** So long does the group wait for a killed member. All that is looked at happens before, on a busy machine too. */
const longSessionS = 90

/**
 * Starts a worker that has to wait before it can join its group, because a killed member's session in the
 * group has not ended.
 */
async function joinWaitingGroup(): Promise<{ own: Scene; joining: SluiceProcess }> {
  const own = await setShopScene(receiver.url('/hung'), { SLUICE_KAFKA_SESSION_TIMEOUT: `${longSessionS}s` })
  const former = await startSluice(own.variables)
  await former.kill()
  const joining = await startSluice(own.variables, { isUnready: true })
  onTestFinished(() => joining.kill())
  return { own, joining }
}

const linesOf = ({ log }: SluiceProcess, text: string) => log.filter(({ msg }) => msg.includes(text))
const errorsOf = ({ log }: SluiceProcess) => log.filter(({ level }) => level === 'error' || level === 'fatal')

describe('the probes', () => {
  test('/livez and /readyz answer 200 while it works', async () => {
    for (const path of ['/livez', '/readyz']) expect((await fetch(urlOf(path))).status).toBe(200)
  })

  test('/readyz is 503 before it has joined and while it stops, and /livez is not', async () => {
    const { own, joining } = await joinWaitingGroup()
    const probe = async (path: string) => {
      const response = await fetch(`http://127.0.0.1:${joining.httpPort}${path}`)
      return { status: response.status, text: await response.text() }
    }
    expect(await probe('/livez')).toEqual({ status: 200, text: 'live\n' })
    expect(await probe('/readyz')).toEqual({ status: 503, text: 'not joined to the consumer group\n' })
    expect(await joining.metric('sluice_ready', { role: 'worker' })).toBe(0)
    // It is as if the session of the killed worker ended now.
    await expelMembers(own.variables['SLUICE_KAFKA_GROUP_ID'] ?? '')
    await until('it is ready', async () => (await probe('/readyz')).status === 200)
    expect(await joining.metric('sluice_ready', { role: 'worker' })).toBe(1)
    const steps = await until('the log tells of the join', () => {
      const told = joining.log.map(({ msg }) => msg)
      return told.includes('joined the group') ? told : undefined
    })
    expect(steps.slice(0, steps.indexOf('joined the group'))).toContain('worker started')

    const before = (await receiver.count('/hung')).requests
    await own.send('shop', newIds(1))
    await until('a request hangs', async () => (await receiver.count('/hung')).requests > before)
    const ended = joining.terminate()
    const stopping = await until('it is not ready', async () => {
      const answer = await probe('/readyz')
      return answer.status === 503 ? answer : undefined
    })
    expect(stopping.text).toBe('stopping\n')
    expect((await probe('/livez')).status).toBe(200)
    expect((await ended).code).toBe(0)
  })

  test('a worker that the group keeps waiting stops at once', async () => {
    const { joining } = await joinWaitingGroup()
    const { code, tookMs } = await joining.terminate()
    expect(code).toBe(0)
    expect(tookMs).toBeLessThan(longSessionS * 1_000 - 30_000)
    expect(joining.log.map(({ msg }) => msg)).not.toContain('joined the group')
    expect(errorsOf(joining)).toEqual([])
  })

  test('a worker that the group keeps waiting while it joins again stops at once, with a last commit, and has left', async () => {
    const [warming, count] = [2_000, 20]
    const own = await setShopScene(receiver.url('/slow'), {
      SLUICE_KAFKA_SESSION_TIMEOUT: `${longSessionS}s`,
      SLUICE_DELIVERY_TIMEOUT: '15s',
    })
    const first = await startSluice(own.variables)
    onTestFinished(() => first.kill())
    const ofFormer = 'former'
    const former = await startSluice({ ...own.variables, SLUICE_KAFKA_CLIENT_ID: ofFormer })
    const joinsOf = (one: SluiceProcess) => linesOf(one, 'joined the group')
    await until('they share the work', () => joinsOf(first).length === 2)
    // The workers learn that the endpoint takes many requests at once.
    await own.send('shop', newIds(warming))
    const requests = async () => (await receiver.count('/slow')).requests - warming
    await until('it has taken many', async () => (await requests()) === 0 && (await own.lag()) === 0)
    await receiver.behave('/slow', { delayMs: 8_000 })
    await first.wholeLog()
    const warmed = linesOf(first, 'attempt').length
    await own.send('shop', newIds(count))
    await until('all are in flight', async () => (await requests()) === count)
    await former.kill()
    const rejoins = linesOf(first, 'rejoining the group').length
    const next = await startSluice(own.variables, { isUnready: true })
    onTestFinished(() => next.kill())
    await until('it joins again', () => linesOf(first, 'rejoining the group').length > rejoins)
    await until('what it has delivered meanwhile is committed', async () => {
      const attempts = linesOf(first, 'attempt').length - warmed
      return attempts > 0 && (await own.lag()) === count - attempts
    })

    const { code, tookMs } = await first.terminate()
    expect(code).toBe(0)
    expect(tookMs).toBeLessThan(longSessionS * 1_000 - 30_000)
    expect(joinsOf(first)).toHaveLength(2)
    expect(errorsOf(first)).toEqual([])
    const rest = await own.lag()
    expect(rest).toBeLessThan(count)
    await expelMembers(own.variables['SLUICE_KAFKA_GROUP_ID'] ?? '', { clientId: ofFormer })
    await until('the next one has delivered the rest', async () => (await own.lag()) === 0)
    expect(await requests()).toBe(count + rest)
    await next.wholeLog()
    // At its first join, the next worker gets as many partitions as the first worker had when it was alone.
    // So the first worker has left the group, and the group didn't have to wait for its session to end.
    expect(joinsOf(next)[0]).toHaveProperty('partitions', joinsOf(first)[0]?.['partitions'])
  })
})

describe('/metrics', () => {
  test('exposes every metric of the table, each with its help', async () => {
    const table = [...(await metricsTable()).values()].filter(({ roles }) => roles.includes('worker'))
    const names = table.map(({ name }) => name).filter((name) => name.startsWith('sluice_'))
    expect(names.length).toBeGreaterThan(55)
    const { helps, types, series } = parseMetrics(await getText('/metrics'))
    expect(names.filter((name) => !/\w/.test(helps.get(name) ?? ''))).toEqual([])
    const exposed = series.map(({ name }) => name)
    const withoutSeries = names.filter((name) => !exposed.some((one) => one.startsWith(name)))
    // This worker has a catalog file and no certificate, traces nothing, no destination fails, and nothing waits.
    expect(withoutSeries.toSorted()).toEqual([
      'sluice_catalog_topic_trouble',
      'sluice_certificate_expiry_timestamp_seconds',
      'sluice_failing_destination_seconds',
      'sluice_trace_spans_total',
      'sluice_waiting_oldest_timestamp_seconds',
    ])
    expect([...types.keys()].filter((name) => name.startsWith('sluice_')).toSorted()).toEqual(
      names.toSorted(),
    )
    expect(types.has('process_cpu_seconds_total')).toBe(true)
    expect(types.has('nodejs_eventloop_lag_seconds')).toBe(true)
  })

  test('tells how near a topic is to dropping what waits in it', async () => {
    const keptS = 8 * 24 * 3_600
    const [waiting] = await readAll(`${scene.prefix}retry.1h`)
    const usedS = await until('the brokers have told how long they keep it', async () => {
      return (await metricOf('sluice_retention_used_ratio', { topic: 'retry.1h' })) * keptS
    })
    const ageS = (Date.now() - (waiting?.timestamp ?? 0)) / 1_000
    expect(usedS).toBeGreaterThan(ageS - 60)
    expect(usedS).toBeLessThan(ageS + 60)
    expect(await metricOf('sluice_retention_used_ratio', { topic: 'events' })).toBe(0)
  })

  test('follows the naming of Prometheus', async () => {
    const { types } = parseMetrics(await getText('/metrics'))
    for (const [name, type] of types) {
      if (!name.startsWith('sluice_')) continue
      expect(name).toMatch(/^[a-z][a-z0-9_]*[a-z0-9]$/)
      expect(name.endsWith('_total'), `${name} is a ${type}`).toBe(type === 'counter')
      if (type === 'histogram') expect(name).toMatch(/_(seconds|bytes|ratio|messages)$/)
      // Metrics use base units only.
      expect(name).not.toMatch(/_(ms|milliseconds|minutes|hours|kilobytes|mb)(_|$)/)
    }
  })

  test('has no label whose values grow with customers', async () => {
    const { series } = parseMetrics(await getText('/metrics'))
    const values = new Map<string, Set<string>>()
    for (const { name, labels } of series.filter((one) => one.name.startsWith('sluice_'))) {
      for (const [label, value] of Object.entries(labels)) {
        if (label === 'le') continue
        const seen = values.get(label) ?? new Set()
        values.set(label, seen.add(value))
        expect([...delivered, 'healthy', 'failing-hook', 'crm'], `${name} ${label}`).not.toContain(value)
      }
    }
    expect([...values.keys()].toSorted()).toEqual(
      'broker commit kind limit outcome partition reason request role state status_class tier topic verdict version way'.split(
        ' ',
      ),
    )
  })

  test('labels deliveries and attempts by destination where that is switched on', async () => {
    const own = await setScene({
      catalog: {
        sources: [{ id: 'healthy' }],
        destinations: [endpoint('healthy', '/healthy')],
      },
      variables: { SLUICE_METRICS_PER_DESTINATION: 'true' },
    })
    const other = await startSluice(own.variables)
    await own.send('healthy', newIds(7))
    const counted = async (name: string) => await other.metric(name, { destination: 'healthy' })
    await until('all are counted', async () => (await counted('sluice_deliveries_total')) === 7)
    expect(await counted('sluice_attempts_total')).toBe(7)
    await other.kill()
    own.close()
  })

  test('counts what happened', async () => {
    const metric = metricOf
    const attempts = delivered.length + 2 * (failed.length + hung.length)
    expect(await metric('sluice_attempts_total')).toBe(attempts)
    expect(await metric('sluice_attempts_total', { status_class: '5xx', verdict: 'retry' })).toBe(
      2 * failed.length,
    )
    expect(await metric('sluice_attempts_total', { outcome: 'timeout', status_class: 'none' })).toBe(
      2 * hung.length,
    )
    expect(await metric('sluice_attempt_duration_seconds_count')).toBe(attempts)
    expect(await metric('sluice_produce_to_delivery_seconds_count')).toBe(delivered.length)
    expect(await metric('sluice_parked_total', { tier: '1s', reason: 'failed' })).toBe(
      failed.length + hung.length,
    )
    expect(await metric('sluice_dead_letters_total', { reason: 'unknown_source' })).toBe(unknown.length)
    expect(await metric('sluice_not_routed_total', { reason: 'no_destination' })).toBe(3)
    expect(await metric('sluice_catalog_destinations', { state: 'on' })).toBe(3)
    expect(await metric('sluice_catalog_destinations')).toBe(3)
    expect(await metric('sluice_catalog_info')).toBe(1)
    expect(await metric('sluice_build_info', { role: 'worker' })).toBe(1)
    expect(await metric('sluice_faults_total')).toBe(0)
    const tried = delivered.length + failed.length + hung.length
    expect(await metric('sluice_append_to_first_attempt_seconds_count', { way: 'direct' })).toBe(tried)
    expect(await metric('sluice_append_to_first_attempt_seconds_count')).toBe(tried)
    // Each message that fails is parked twice, at once and one second later. Both times, hardly any of its
    // four hours is used.
    const parkedTwice = { le: '0.1' }
    expect(await metric('sluice_parked_retry_limit_used_ratio_bucket', parkedTwice)).toBe(
      2 * (failed.length + hung.length),
    )
    // The worker gives up a hung request after its timeout. The quickest attempt takes hardly longer than that.
    const quickestS = Math.min(...attemptsOf(hung).map(({ durationMs }) => Number(durationMs))) / 1_000
    expect(quickestS).toBeGreaterThanOrEqual(timeoutS)
    expect(quickestS).toBeLessThan(2 * timeoutS)
    const sum = await metric('sluice_attempt_duration_seconds_sum', { outcome: 'timeout' })
    expect(sum).toBeGreaterThanOrEqual(2 * hung.length * timeoutS)
  })

  test('tells what waits, since when nothing was committed, and when the first of a tier is due', async () => {
    const metric = metricOf
    const waiting = failed.length + hung.length
    expect(await metric('sluice_parked_records', { tier: '1h' })).toBe(waiting)
    expect(await metric('sluice_parked_records', { tier: '1s' })).toBe(0)
    expect(await metric('sluice_consumer_lag_records')).toBe(waiting)
    const dueMs = (await metric('sluice_oldest_due_timestamp_seconds', { tier: '1h' })) * 1_000
    expect(dueMs).toBeLessThanOrEqual(parkedToMs + 3_600_000)
    expect(dueMs).toBeGreaterThanOrEqual(parkedFromMs + 3_600_000)
    expect(await metric('sluice_oldest_due_timestamp_seconds', { tier: '1s' })).toBe(0)
    const commitAge = await metric('sluice_commit_age_seconds')
    expect(commitAge).toBeGreaterThanOrEqual(0)
    expect(commitAge).toBeLessThan(30)
    for (const name of ['sluice_held_records', 'sluice_held_bytes', 'sluice_deliveries_in_flight']) {
      expect(await metric(name)).toBe(0)
    }
    expect(await metric('sluice_produce_stalled')).toBe(0)
    const parkedMs =
      (await metric('sluice_oldest_unsettled_timestamp_seconds', { topic: 'retry.1h' })) * 1_000
    expect(parkedMs).toBeLessThanOrEqual(parkedToMs)
    expect(parkedMs).toBeGreaterThanOrEqual(parkedFromMs)
    expect(await metric('sluice_oldest_unsettled_timestamp_seconds', { topic: 'events' })).toBe(0)
  })

  test('tells the limits beside what is held', async () => {
    expect(await metricOf('sluice_deliveries_in_flight_limit')).toBe(512)
    expect(await metricOf('sluice_held_records_limit')).toBe(2_000)
    expect(await metricOf('sluice_held_bytes_limit')).toBe(64 * 1024 ** 2)
    expect(await metricOf('sluice_paced_requests_in_flight_limit')).toBeGreaterThan(0)
  })

  test('tells the lag of the whole group as the brokers have it', async () => {
    const waiting = failed.length + hung.length
    await until('it is read', async () => {
      return (await metricOf('sluice_group_lag_records', { topic: 'retry.1h' })) === waiting
    })
    const whole = await until('what is settled is committed', async () => {
      const lag = await metricOf('sluice_group_lag_records')
      return lag === waiting ? { lag } : undefined
    })
    expect(whole.lag).toBe(waiting)
  })
})

function attemptsOf(ids: readonly string[]): LogLine[] {
  return worker.log.filter((line) => ids.includes(String(line['messageId'])) && 'durationMs' in line)
}

describe('the log', () => {
  test('has one line an attempt', async () => {
    const expected = delivered.length + 2 * (failed.length + hung.length)
    const lines = await until('all lines are there', () => {
      const found = attemptsOf([...delivered, ...failed, ...hung])
      return found.length >= expected ? found : undefined
    })
    expect(lines).toHaveLength(expected)
    expect(
      attemptsOf(delivered)
        .map(({ messageId }) => String(messageId))
        .toSorted(),
    ).toEqual(delivered.toSorted())
    for (const id of failed) {
      expect(attemptsOf([id]).map(({ attempt }) => attempt)).toEqual([1, 2])
    }
    expect(attemptsOf(delivered)[0]).toMatchObject({
      level: 'info',
      destination: 'healthy',
      hook: 'healthy-hook',
      type: 'track',
      attempt: 1,
      verdict: 'delivered',
      status: 200,
    })
    expect(attemptsOf(failed)[0]).toMatchObject({ level: 'warn', verdict: 'retry', status: 500 })
  })

  test('calls a timeout an error, and a timeout', async () => {
    const lines = await until('both attempts of all are there', () => {
      const found = attemptsOf(hung)
      return found.length >= 2 * hung.length ? found : undefined
    })
    for (const line of lines) {
      expect(line).toMatchObject({ level: 'error', outcome: 'timeout' })
      expect(line.msg).toMatch(/^timeout/)
    }
  })

  test('names what went to the dead letters, with the reason', () => {
    const lines = worker.log.filter(({ msg }) => msg === 'dead letter')
    expect(lines.map(({ reason }: LogLine) => reason)).toEqual(unknown.map(() => 'unknown_source'))
  })

  test('has no secret and no body', () => {
    const all = worker.log.map((line) => JSON.stringify(line)).join('\n')
    expect(all).toContain(delivered[0] ?? '')
    for (const hidden of [secret, headerSecret, eventName, 'properties', 'user-'])
      expect(all).not.toContain(hidden)
  })
})
