import kafkajs, { type Cluster, type Kafka } from 'kafkajs'
import { type KnownVersions, versionCaution, versionProblem } from './broker-versions.ts'
import { openPartwiseCluster } from '../kafka/cluster/partwise-cluster.ts'
import type { Operation } from './rights.ts'

/**
 * The operations that this client may do on a resource, or `unreported` if the cluster doesn't report them.
 */
export type Allowed = ReadonlySet<Operation> | 'unreported'

export type BrokerLook = {
  /**
   * The reason why Sluice can't work with this broker. `undefined` if Sluice can work with it. If there is a
   * reason, the other properties must not be used.
   */
  readonly problem: string | undefined
  /** A line that tells the operator which facts this broker can't report, and what follows from that. */
  readonly caution?: string | undefined
  readonly topics: ReadonlyMap<string, Allowed>
  readonly group: Allowed
}

// The following types declare the parts of a kafkajs broker and of kafkajs' broker pool that are used here.
// kafkajs declares only some of these parts.

type Request = { readonly apiKey: number; readonly apiVersion: number; readonly apiName: string }
type AskedBroker = {
  readonly versions: Readonly<
    Record<number, { readonly minVersion: number; readonly maxVersion: number }>
  > | null
  readonly connectionPool: {
    send<T>(protocol: {
      request: Request & { encode(): Promise<{ readonly buf: Buffer; readonly buffer: Buffer }> }
      response: { decode(bytes: Buffer): Promise<T>; parse(answer: T): Promise<T> }
    }): Promise<T>
  }
}
type Pool = { readonly findConnectedBroker: () => Promise<AskedBroker> }

const keys = { metadata: 3, findCoordinator: 10, describeGroups: 15 } as const
/** The first version of Metadata whose answers list the allowed operations. It came with Apache Kafka 2.3. */
const tellingMetadata = 8
/** The first version of DescribeGroups whose answers list the allowed operations. It came with Kafka 2.3. */
const tellingDescribeGroups = 3
const findCoordinatorVersion = 2

const errors = { none: 0, topicAuthorization: 29, groupAuthorization: 30 } as const

/**
 * Asks a broker which request versions it knows and what this client may do. If a group is given, asks the
 * group's coordinator about the group. Changes nothing, and creates no topic.
 */
export async function lookAtBroker(
  kafka: Kafka,
  asked: {
    readonly topics: readonly string[]
    readonly groupId: string | undefined
    readonly hasInstanceId?: boolean
  },
): Promise<BrokerLook> {
  const opened = openPartwiseCluster(kafka)
  const { cluster } = opened
  try {
    await cluster.connect()
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs declares only a part of its cluster
    const { brokerPool } = cluster as unknown as { readonly brokerPool: Pool }
    const broker = await brokerPool.findConnectedBroker()
    // `versions` is missing if the broker has accepted the connection but doesn't answer. This error says so.
    // Otherwise the broker would be reported as too old.
    if (!broker.versions) throw new kafkajs.KafkaJSConnectionError('the broker does not say its versions')
    const versions: KnownVersions = new Map(
      Object.entries(broker.versions).map(([apiKey, { minVersion, maxVersion }]) => [
        Number(apiKey),
        { lowest: minVersion, highest: maxVersion },
      ]),
    )
    const problem = versionProblem(versions, asked.hasInstanceId)
    if (problem !== undefined) return { problem, topics: new Map(), group: 'unreported' }
    const knows = (apiKey: number, version: number): boolean =>
      (versions.get(apiKey)?.highest ?? -1) >= version
    const topics = knows(keys.metadata, tellingMetadata) ? await askTopics(broker, asked.topics) : new Map()
    const group =
      asked.groupId !== undefined && knows(keys.describeGroups, tellingDescribeGroups)
        ? await askGroup(cluster, broker, asked.groupId).catch(unreportedWhileAway)
        : 'unreported'
    return { problem, caution: versionCaution(versions), topics, group }
  } finally {
    await opened.close()
  }
}

/**
 * Returns `unreported` for an error of kafkajs. Throws any other error. The cause of such an error may be
 * that the coordinator is moving to another broker. This isn't reported as a problem, because a member that
 * joins the group waits for its coordinator.
 */
function unreportedWhileAway(error: unknown): Allowed {
  if (error instanceof kafkajs.KafkaJSError) return 'unreported'
  throw error
}

/** Asks which operations are allowed on each topic, with a Metadata request of version 8. */
async function askTopics(
  broker: AskedBroker,
  topics: readonly string[],
): Promise<ReadonlyMap<string, Allowed>> {
  // The three flags mean: don't create topics, leave out the rights on the cluster, and report the rights on
  // the topics.
  const body = Buffer.concat([arrayOf(topics), Buffer.from([0, 0, 1])])
  const request = { apiKey: keys.metadata, apiVersion: tellingMetadata, apiName: 'Metadata' }
  return send(broker, request, body, (at) => {
    at.skip(4)
    at.array(() => {
      at.skip(4)
      at.text()
      at.skip(4)
      at.text()
    })
    at.text()
    at.skip(4)
    return new Map(
      at.array(() => {
        const code = at.int16()
        const topic = at.text()
        at.skip(1)
        at.array(() => {
          at.skip(2 + 4 + 4 + 4)
          for (let lists = 0; lists < 3; lists++) at.array(() => at.skip(4))
        })
        return [topic, allowedBy(code, at.int32(), errors.topicAuthorization)] as const
      }),
    )
  })
}

/**
 * Asks which operations are allowed on the group. Sends FindCoordinator (version 2) first, because only the
 * group's coordinator can answer DescribeGroups (version 3).
 */
async function askGroup(cluster: Cluster, broker: AskedBroker, groupId: string): Promise<Allowed> {
  const find = {
    apiKey: keys.findCoordinator,
    apiVersion: findCoordinatorVersion,
    apiName: 'FindCoordinator',
  }
  const found = await send(broker, find, Buffer.concat([textOf(groupId), Buffer.from([0])]), (at) => {
    at.skip(4)
    const code = at.int16()
    at.text()
    return { code, nodeId: at.int32() }
  })
  if (found.code === errors.groupAuthorization) return new Set()
  // The coordinator isn't ready yet, so the rights aren't known. If a right is missing, the later join fails
  // and names the right.
  if (found.code !== errors.none) return 'unreported'
  await cluster.refreshMetadata()
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs declares only a part of its brokers
  const coordinator = (await cluster.findBroker({ nodeId: String(found.nodeId) })) as unknown as AskedBroker
  const describe = {
    apiKey: keys.describeGroups,
    apiVersion: tellingDescribeGroups,
    apiName: 'DescribeGroups',
  }
  return send(coordinator, describe, Buffer.concat([arrayOf([groupId]), Buffer.from([1])]), (at) => {
    at.skip(4)
    const [allowed = 'unreported' as const] = at.array(() => {
      const code = at.int16()
      for (let texts = 0; texts < 4; texts++) at.text()
      at.array(() => {
        for (let texts = 0; texts < 3; texts++) at.text()
        for (let blobs = 0; blobs < 2; blobs++) at.skip(Math.max(0, at.int32()))
      })
      return allowedBy(code, at.int32(), errors.groupAuthorization)
    })
    return allowed
  })
}

const unreported = -(2 ** 31)
/**
 * The codes of Kafka's `AclOperation`. In the field of allowed operations, bit N stands for the operation
 * with the code N.
 */
const bits: readonly (readonly [Operation, number])[] = [
  ['READ', 3],
  ['WRITE', 4],
  ['CREATE', 5],
  ['DELETE', 6],
  ['ALTER', 7],
  ['DESCRIBE', 8],
  ['DESCRIBE_CONFIGS', 10],
  ['ALTER_CONFIGS', 11],
]

function allowedBy(code: number, field: number, refusal: number): Allowed {
  if (code === refusal) return new Set()
  if (code !== errors.none || field === unreported) return 'unreported'
  return new Set(bits.filter(([, bit]) => (field & (1 << bit)) !== 0).map(([operation]) => operation))
}

function send<T>(broker: AskedBroker, request: Request, body: Buffer, read: (at: Reader) => T): Promise<T> {
  return broker.connectionPool.send<T>({
    request: { ...request, encode: () => Promise.resolve({ buf: body, buffer: body }) },
    response: {
      decode: (bytes) => Promise.resolve(read(new Reader(bytes))),
      parse: (answer) => Promise.resolve(answer),
    },
  })
}

/** Reads the fields of an answer in order. The methods throw a RangeError if the answer ends too soon. */
class Reader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  skip(length: number): void {
    this.#at += length
  }

  int16(): number {
    return this.#bytes.readInt16BE((this.#at += 2) - 2)
  }

  int32(): number {
    return this.#bytes.readInt32BE((this.#at += 4) - 4)
  }

  /** Reads a text. Returns the empty text for null. */
  text(): string {
    const length = Math.max(0, this.int16())
    return this.#bytes.toString('utf8', this.#at, (this.#at += length))
  }

  array<T>(read: () => T): T[] {
    const items: T[] = []
    for (let left = this.int32(); left > 0; left--) items.push(read())
    return items
  }
}

function textOf(text: string): Buffer {
  const head = Buffer.alloc(2)
  head.writeInt16BE(Buffer.byteLength(text))
  return Buffer.concat([head, Buffer.from(text)])
}

function arrayOf(texts: readonly string[]): Buffer {
  const head = Buffer.alloc(4)
  head.writeInt32BE(texts.length)
  return Buffer.concat([head, ...texts.map(textOf)])
}
