import type { Kafka } from 'kafkajs'
import { errorCodes, protocolError } from './error-codes.ts'
import { findCoordinator } from './group-messages.ts'
import type { OpenCluster } from './open-cluster.ts'
import { openPartwiseCluster } from './partwise-cluster.ts'
import { ask, type WireBroker, type WireRequest } from './wire.ts'
import { within } from './within.ts'

type Opened = OpenCluster & { readonly broker: Promise<WireBroker> }

const answerTimeoutMs = 5_000

/** It isn't the coordinator any more, or not yet: it is looked for anew before the next request. */
const elsewhere: ReadonlySet<number> = new Set([
  errorCodes.COORDINATOR_LOAD_IN_PROGRESS,
  errorCodes.COORDINATOR_NOT_AVAILABLE,
  errorCodes.NOT_COORDINATOR,
])

/**
 * A connection to the coordinator of a group. It is made when it is first used, and again after an error: a
 * broker answers what comes by one connection in its order, and one that gives no answer in seconds gives
 * none at all.
 */
export class Coordinator {
  readonly #kafka: Kafka
  readonly #groupId: string
  readonly #topic: string
  #opened: Opened | undefined

  /** `topic`: any of the group's, so that the brokers needn't tell about all. */
  constructor(kafka: Kafka, groupId: string, topic: string) {
    this.#kafka = kafka
    this.#groupId = groupId
    this.#topic = topic
  }

  /**
   * Gives the answer with its error codes, but for those that say that this broker isn't the coordinator:
   * these are thrown. Throws as well when none can be reached, or none answers within 5 s, or as long as the
   * request itself may take.
   */
  async ask<T>(request: WireRequest<T>): Promise<T> {
    const opened = (this.#opened ??= this.#open())
    try {
      const answered = opened.broker.then((broker) => {
        // What was given up must not be sent later: a commit of before would put back what a newer one has
        // said.
        if (this.#opened !== opened) throw new Error('the connection to the coordinator was closed')
        return ask(broker, request)
      })
      const timeoutMs = Math.max(answerTimeoutMs, request.timeoutMs ?? 0)
      if (!(await within(timeoutMs, answered)))
        throw new Error(`the group's coordinator did not answer within ${timeoutMs} ms`)
      const answer = await answered
      for (const code of codesOf(answer)) if (elsewhere.has(code)) throw protocolError(code)
      return answer
    } catch (error) {
      this.#close(opened)
      throw error
    }
  }

  /** What is under way fails. The next request connects again. */
  close(): void {
    if (this.#opened !== undefined) this.#close(this.#opened)
  }

  #close(opened: Opened): void {
    if (this.#opened === opened) this.#opened = undefined
    void opened.close()
    // kafkajs goes on trying for a while, and connects again for it; and it waits for all answers before it
    // closes a connection.
    void opened.broker
      .then(giveUp)
      .catch(() => undefined)
      .then(() => opened.close())
  }

  #open(): Opened {
    const opened = openPartwiseCluster(this.#kafka)
    return { ...opened, broker: this.#find(opened) }
  }

  async #find({ cluster }: OpenCluster): Promise<WireBroker> {
    await cluster.connect()
    await cluster.addTargetTopic(this.#topic)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs declares a part of its cluster only
    const brokers = cluster as unknown as Brokers
    const { errorCode, nodeId } = await ask(
      await brokers.brokerPool.findConnectedBroker(),
      findCoordinator(this.#groupId),
    )
    if (errorCode !== errorCodes.NONE) throw protocolError(errorCode)
    return brokers.findBroker({ nodeId: String(nodeId) })
  }
}

/** What of kafkajs' cluster is used, which it declares in part. */
type Brokers = {
  readonly brokerPool: { findConnectedBroker(): Promise<WireBroker> }
  findBroker(node: { nodeId: string }): Promise<WireBroker>
}

/** Rejects what isn't answered yet. */
function giveUp({ connectionPool }: WireBroker): void {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs declares a part of its brokers only
  const { pool } = connectionPool as unknown as { pool: { rejectRequests(error: Error): void }[] }
  for (const connection of pool)
    connection.rejectRequests(new Error('the connection to the coordinator was closed'))
}

/** Of the answer as a whole, or else of its first partition: all have the same code then. */
function codesOf(answer: unknown): readonly number[] {
  const of: unknown = Array.isArray(answer) ? answer[0] : answer
  if (typeof of !== 'object' || of === null || !('errorCode' in of)) return []
  return typeof of.errorCode === 'number' ? [of.errorCode] : []
}
