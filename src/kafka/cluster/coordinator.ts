import type { Kafka } from 'kafkajs'
import { errorCodes, protocolError } from '../wire/error-codes.ts'
import { type CoordinatorType, findCoordinator } from '../wire/group-messages.ts'
import type { OpenCluster } from './open-cluster.ts'
import { openPartwiseCluster } from './partwise-cluster.ts'
import { ask, type WireBroker, type WireRequest } from '../wire/wire-request.ts'
import { answerWithin } from '../../async/within.ts'

type Opened = { readonly client: OpenCluster; readonly broker: Promise<WireBroker> }

const answerTimeoutMs = 5_000
const closed = 'the connection to the coordinator was closed'

/**
 * The errors of a broker that isn't the coordinator any more, or isn't the coordinator yet. After such an
 * error, the coordinator is looked up again before the next request.
 */
const elsewhere: ReadonlySet<number> = new Set([
  errorCodes.COORDINATOR_LOAD_IN_PROGRESS,
  errorCodes.COORDINATOR_NOT_AVAILABLE,
  errorCodes.NOT_COORDINATOR,
])

/**
 * A connection to the coordinator of a group, or of a transactional id. The connection is made when it is
 * first used. After an error it is made again. A broker answers the requests of a connection in their order,
 * so one late answer holds back all later answers. For this reason, the connection is closed when an answer
 * is late.
 */
export class Coordinator {
  readonly #kafka: Kafka
  readonly #id: string
  readonly #topic: string
  readonly #type: CoordinatorType
  #opened: Opened | undefined

  /**
   * Prepares the connection. `id` is a group id, or a transactional id. `topic` may be any topic of the group
   * or the transaction. If none was given, the client would ask the brokers about all topics.
   */
  constructor(kafka: Kafka, id: string, topic: string, type: CoordinatorType = 'group') {
    this.#kafka = kafka
    this.#id = id
    this.#topic = topic
    this.#type = type
  }

  /**
   * Sends a request to the coordinator, and returns the answer. The answer may contain error codes. Throws if
   * an error code says that this broker isn't the coordinator. Throws if no broker can be reached. Throws if
   * no answer comes within 5 s, or within the request's own timeout if that is longer. A throttle that the
   * broker has announced doesn't count. The broker answers a throttled heartbeat at once. Later requests wait
   * until the throttle is over. By Kafka's defaults, this is after a second at most.
   */
  async ask<T>(request: WireRequest<T>): Promise<T> {
    const opened = (this.#opened ??= this.#open())
    try {
      const answered = opened.broker.then((broker) => {
        // A request that was given up must not be sent later: an old commit would undo a newer commit.
        if (this.#opened !== opened) throw new Error(closed)
        return ask(broker, request)
      })
      const timeoutMs = Math.max(answerTimeoutMs, request.timeoutMs ?? 0)
      const late = `the ${this.#type}'s coordinator did not answer within ${timeoutMs} ms`
      const answer = await answerWithin(timeoutMs, answered, late, () => opened.client.readsFromMs)
      for (const code of codesOf(answer)) if (elsewhere.has(code)) throw protocolError(code)
      return answer
    } catch (error) {
      this.#close(opened)
      throw error
    }
  }

  /** Closes the connection. Requests under way fail. The next request connects again. */
  close(): void {
    if (this.#opened !== undefined) this.#close(this.#opened)
  }

  #close(opened: Opened): void {
    if (this.#opened === opened) this.#opened = undefined
    opened.client.cut(closed)
    // kafkajs tries to connect for a while after the close, and may open a further connection. So all
    // connections are cut off once more.
    void opened.broker.catch(() => undefined).then(() => opened.client.cut(closed))
  }

  #open(): Opened {
    const client = openPartwiseCluster(this.#kafka)
    return { client, broker: this.#find(client) }
  }

  async #find({ cluster }: OpenCluster): Promise<WireBroker> {
    await cluster.connect()
    await cluster.addTargetTopic(this.#topic)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs declares only a part of its cluster
    const brokers = cluster as unknown as Brokers
    const { errorCode, nodeId } = await ask(
      await brokers.brokerPool.findConnectedBroker(),
      findCoordinator(this.#id, this.#type),
    )
    if (errorCode !== errorCodes.NONE) throw protocolError(errorCode)
    return brokers.findBroker({ nodeId: String(nodeId) })
  }
}

/** The parts of kafkajs' cluster that are used here. kafkajs declares only some of them. */
type Brokers = {
  readonly brokerPool: { findConnectedBroker(): Promise<WireBroker> }
  findBroker(node: { nodeId: string }): Promise<WireBroker>
}

/**
 * Returns the error code of the whole answer. An answer may have one error code for each partition. In this
 * case, returns only the first code, because a broker that isn't the coordinator reports the same code for
 * all partitions.
 */
function codesOf(answer: unknown): readonly number[] {
  const of: unknown = Array.isArray(answer) ? answer[0] : answer
  if (typeof of !== 'object' || of === null || !('errorCode' in of)) return []
  return typeof of.errorCode === 'number' ? [of.errorCode] : []
}
