import { ByteReader, ByteWriter } from '../../src/kafka/wire/bytes.ts'
import { openPartwiseCluster } from '../../src/kafka/cluster/partwise-cluster.ts'
import { ask, type WireBroker, type WireRequest } from '../../src/kafka/wire/wire-request.ts'
import { testKafka } from './kafka.ts'
import { workerKafka } from './worker-kafka.ts'

/** Kafka's quotas of a client id. Bytes are for a second, and a percentage is of one of the broker's threads. */
export type Quotas = Partial<
  Record<
    'producer_byte_rate' | 'consumer_byte_rate' | 'request_percentage' | 'controller_mutation_rate',
    number
  >
>

/** Sets quotas of a client id, as `kafka-configs.sh --alter --entity-type clients` does. */
export async function setQuotas(
  clientId: string,
  quotas: Quotas,
  brokers: readonly string[] = testKafka(),
): Promise<void> {
  const opened = openPartwiseCluster(workerKafka({ brokers, clientId: 'test-quotas' }))
  try {
    await opened.cluster.connect()
    await opened.cluster.addTargetTopic('none')
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs declares no such method
    const cluster = opened.cluster as unknown as { findControllerBroker(): Promise<WireBroker> }
    const problem = await ask(await cluster.findControllerBroker(), alterClientQuotas(clientId, quotas))
    if (problem !== undefined) throw new Error(`the quotas can not be set: ${problem}`)
  } finally {
    await opened.close()
  }
}

/** Source: the Kafka protocol, AlterClientQuotas, version 0. The answer is the reason for a refusal, if any. */
function alterClientQuotas(clientId: string, quotas: Quotas): WireRequest<string | undefined> {
  return {
    apiKey: 49,
    apiName: 'AlterClientQuotas',
    lowest: 0,
    highest: 0,
    write() {
      const out = new ByteWriter()
      out.array([clientId], () => {
        out.array([clientId], (name) => out.string('client-id').string(name))
        out.array(Object.entries(quotas), ([key, value]) => {
          const double = Buffer.alloc(8)
          double.writeDoubleBE(value)
          out.string(key).raw(double).bool(false)
        })
      })
      return out.bool(false).finished()
    },
    read(body) {
      const from = new ByteReader(body)
      from.int32()
      const [problem] = from.array(() => {
        const [code, message] = [from.int16(), from.nullableString()]
        from.array(() => [from.string(), from.nullableString()])
        return code === 0 ? undefined : `error ${code} ${message ?? ''}`
      })
      return problem
    },
  }
}
