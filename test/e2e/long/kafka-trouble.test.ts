import { spawn } from 'node:child_process'
import { createServer, type Server } from 'node:net'
import { resolve } from 'node:path'
import { setTimeout as passTime } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type KafkaNode, type RunningKafka, startKafka } from '../../../src/development/kafka.ts'
import { type CountingReceiver, startCountingReceiver } from '../../support/counting-receiver.ts'
import { otherProgram, readAll } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import {
  applyTopics,
  runSluice,
  type SluiceProcess,
  startSluice,
  writeCatalog,
} from '../../support/worker-process.ts'
import { newIds, unhurried, type Scene, setScene } from '../scene.ts'

const emptyCatalog = writeCatalog({ sources: [], destinations: [] })

/** A Kafka broker that only the tests of this file use, because they stop it. */
let kafka: RunningKafka
let broker: KafkaNode
/**
 * A worker without Kafka, whose client gives up after half a minute. It starts before everything else, and
 * the last test looks at its result.
 */
let withoutKafka: ReturnType<typeof runSluice>

beforeAll(async () => {
  withoutKafka = runSluice(
    ['worker'],
    { SLUICE_KAFKA_BROKERS: '127.0.0.1:1', SLUICE_CATALOG_FILE: emptyCatalog.path },
    { expectedCode: 1 },
  )
  kafka = await startKafka({ brokers: [], ways: ['java'] })
  const [node] = kafka.nodes ?? []
  if (node === undefined) throw new Error('there is no broker to stop')
  broker = node
})

afterAll(async () => {
  await kafka.stop()
  emptyCatalog.remove()
})

/**
 * A worker that is delivering messages to two destinations. `failing` fails all the time, and `healthy`
 * works.
 */
class Patient {
  readonly worker: SluiceProcess
  readonly scene: Scene
  readonly receiver: CountingReceiver
  readonly ids: readonly string[]

  private constructor(
    worker: SluiceProcess,
    scene: Scene,
    receiver: CountingReceiver,
    ids: readonly string[],
  ) {
    this.worker = worker
    this.scene = scene
    this.receiver = receiver
    this.ids = ids
  }

  static async start(): Promise<Patient> {
    const receiver = await startCountingReceiver()
    await receiver.behave('/failing', { status: 500, delayMs: 50 })
    const scene = await setScene({
      brokers: kafka.brokers,
      catalog: {
        sources: [{ id: 'shop' }],
        destinations: [
          { id: 'failing', sources: ['shop'], maxInFlight: 20, hooks: [{ url: receiver.url('/failing') }] },
          { id: 'healthy', sources: ['shop'], hooks: [{ url: receiver.url('/healthy') }] },
        ],
      },
      variables: {
        ...unhurried,
        SLUICE_RETRY_LADDER: '1s',
        SLUICE_RETRY_THEN: '1s',
        SLUICE_SHUTDOWN_TIMEOUT: `${shutdownMs}ms`,
      },
    })
    const worker = await startSluice(scene.variables)
    const ids = newIds(2_000)
    await scene.send('shop', ids)
    await until('some have been tried', async () => (await receiver.count('/failing')).requests > 200)
    return new Patient(worker, scene, receiver, ids)
  }

  async readiness(): Promise<{ status: number; text: string }> {
    const response = await fetch(`http://127.0.0.1:${this.worker.httpPort}/readyz`)
    return { status: response.status, text: await response.text() }
  }

  async attempts(): Promise<number> {
    return (await this.receiver.count('/failing')).requests
  }

  async close(): Promise<void> {
    if (this.worker.isRunning) await this.worker.kill()
    this.scene.close()
    await this.receiver.stop()
  }
}

const shutdownMs = 4_000
/**
 * The time that the process may take to exit after its shutdown timeout, in milliseconds. The Helm chart
 * allows twice this time before Kubernetes kills the process.
 */
const leewayMs = 2_500

describe.each([
  {
    trouble: 'dies',
    stop: () => broker.kill('SIGKILL'),
    goOn: async (): Promise<void> => broker.start(),
  },
  {
    trouble: 'hangs',
    stop: () => process.kill(broker.pid ?? 0, 'SIGSTOP'),
    goOn: async (): Promise<void> => {
      process.kill(broker.pid ?? 0, 'SIGCONT')
    },
  },
])('while the broker $trouble', ({ stop, goOn }) => {
  let staying: Patient
  let ending: Patient

  beforeAll(async () => {
    ;[staying, ending] = await Promise.all([Patient.start(), Patient.start()])
    await stop()
  })

  afterAll(async () => {
    await staying.close()
    await ending.close()
  })

  test('a worker is not ready', async () => {
    const { text } = await until(
      'it is not ready',
      async () => {
        const readiness = await staying.readiness()
        return readiness.status === 503 ? readiness : undefined
      },
      { timeoutMs: 10_000 },
    )
    expect(text).toMatch(/Kafka does not accept writes|not joined/)
  })

  test.concurrent('a worker tries nothing', async () => {
    await until('what was in flight is over', async () => {
      return (await staying.receiver.count('/failing')).inFlight === 0
    })
    const before = await staying.attempts()
    // Four times the wait before a retry.
    await passTime(4_000)
    expect(await staying.attempts()).toBe(before)
  })

  test.concurrent('SIGTERM ends a worker in time', async () => {
    const { code, tookMs } = await ending.worker.terminate()
    expect(code).toBe(0)
    expect(tookMs).toBeLessThan(shutdownMs + leewayMs)
  })

  test('a worker waits, and goes on by itself afterwards: everything arrives', async () => {
    const { receiver, scene, ids, worker } = staying
    await receiver.behave('/failing', {})
    await goOn()
    await until('all has arrived', async () => (await receiver.count('/failing')).delivered === ids.length, {
      timeoutMs: 60_000,
    })
    await until('all is committed', async () => (await scene.lag()) === 0, {
      timeoutMs: 60_000,
      everyMs: 250,
    })
    expect((await receiver.count('/healthy')).delivered).toBe(ids.length)
    expect(worker.isRunning).toBe(true)
    expect((await staying.readiness()).status).toBe(200)
  })
})

test('what Kafka does not take is not committed, so that a crash loses nothing', async () => {
  const receiver = await startCountingReceiver()
  await receiver.behave('/hook', { status: 404 })
  const scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: [{ id: 'crm', sources: ['shop'], hooks: [{ url: receiver.url('/hook') }] }],
    },
    variables: unhurried,
  })
  const deadLetters = `${scene.prefix}dead-letters`
  const before = await startSluice(scene.variables)
  // Only writes of dead letters fail. Commits and fetches still work.
  await deleteTopic(deadLetters)
  const ids = newIds(50)
  await scene.send('shop', ids)
  await until('it says so', async () => (await before.metric('sluice_produce_partitions_failing')) > 0)
  await until('tries are counted', async () => (await before.metric('sluice_produce_failures_total')) > 1)
  await before.kill()
  expect(await scene.lag()).toBe(ids.length)

  await applyTopics(scene.variables)
  const after = await startSluice(scene.variables)
  await until('all is committed', async () => (await scene.lag()) === 0, { everyMs: 250 })
  const letters = await readAll(deadLetters)
  expect(letters.map(({ headers }) => String(headers['message-id'])).toSorted()).toEqual(ids.toSorted())
  await after.kill()
  scene.close()
  await receiver.stop()
})

/**
 * Deletes a topic. Waits until the broker no longer lists the topic, because the broker answers the request
 * before that.
 */
async function deleteTopic(topic: string): Promise<void> {
  const admin = otherProgram().admin()
  await admin.connect()
  await admin.deleteTopics({ topics: [topic] })
  await until('the topic is gone', async () => !(await admin.listTopics()).includes(topic))
  await admin.disconnect()
}

describe('a worker that starts', () => {
  test('ends on SIGTERM at once while Kafka does not answer', async () => {
    /** A server that accepts connections and sends nothing. */
    const silent = createServer().listen(0, '127.0.0.1')
    await until('it listens', () => silent.listening)
    const address = silent.address()
    const child = spawn(process.execPath, [resolve(import.meta.dirname, '../../../src/main.ts'), 'worker'], {
      env: {
        PATH: process.env['PATH'],
        SLUICE_HTTP_PORT: '0',
        SLUICE_KAFKA_BROKERS: `127.0.0.1:${typeof address === 'object' ? address?.port : 0}`,
        SLUICE_CATALOG_FILE: emptyCatalog.path,
      },
      stdio: 'ignore',
    })
    const exited = new Promise((done) => child.once('exit', done))
    await until('it tries', () => hasConnection(silent))
    const startedMs = performance.now()
    child.kill('SIGTERM')
    await exited
    silent.close()
    expect(performance.now() - startedMs).toBeLessThan(2_000)
  })

  test('ends with an error that names the Kafka it can not reach, without a stack', async () => {
    const { stderr } = await withoutKafka
    expect(stderr).toMatch(/^sluice: Kafka .*127\.0\.0\.1:1/)
    expect(stderr).not.toMatch(/^\s+at /m)
  })
})

function hasConnection(server: Server): Promise<boolean> {
  return new Promise((done) => {
    server.getConnections((_error, count) => done(count > 0))
  })
}
