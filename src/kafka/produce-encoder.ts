import { type ProducedPartition, writeProduceRequest, type WrittenRecord } from './produce-request.ts'
import { replaceFile } from './kafkajs-file.ts'

/** What kafkajs 2.2.4 makes a produce request of. */
type ProduceOptions = {
  acks: number
  timeout: number
  transactionalId?: string | null
  /** Its own kind of a 64-bit number, or -1 of a producer that isn't idempotent. */
  producerId?: number | { readonly value?: unknown }
  producerEpoch?: number
  compression?: number
  topicData: readonly { topic: string; partitions: readonly TimedPartition[] }[]
}

type TimedRecord = WrittenRecord & { readonly timestamp?: unknown }
type TimedPartition = Omit<ProducedPartition, 'messages'> & { readonly messages: readonly TimedRecord[] }

/** What it does with it: `encode` gives an encoder, of which it reads these two. */
type Request = { encode: () => Promise<{ readonly buf: Buffer; readonly buffer: Buffer }> }
type MakeRequest = (options: ProduceOptions) => Request

const kafkajsFile = 'kafkajs/src/protocol/requests/produce/v3/request.js'

/**
 * Puts `writeProduceRequest` in the place of kafkajs' own writer: the versions of a produce request from 3 on are made of this
 * file, which they load at the first produce. Called before the first client is made; fails when kafkajs has no such file.
 */
export function replaceProduceEncoder(): void {
  replaceFile(kafkajsFile, makeRequestWith)
}

function makeRequestWith(original: MakeRequest): MakeRequest {
  return (options) => {
    const request = original(options)
    return {
      ...request,
      async encode() {
        const body = encode(options)
        return body === undefined ? request.encode() : { buf: body, buffer: body }
      },
    }
  }
}

/** `undefined` for what is left to kafkajs: transactions, compression, and records with a time of their own. */
function encode(options: ProduceOptions): Buffer | undefined {
  const { acks, timeout, topicData, transactionalId = null, compression = 0, producerEpoch = 0 } = options
  const producerId = bigintOf(options.producerId)
  if (transactionalId !== null || compression !== 0 || producerId === undefined) return undefined
  if (topicData.some(({ partitions }) => partitions.some(hasTimes))) return undefined
  const timestampMs = Date.now()
  return writeProduceRequest({ acks, timeoutMs: timeout, topicData, producerId, producerEpoch, timestampMs })
}

function bigintOf(producerId: ProduceOptions['producerId'] = -1): bigint | undefined {
  if (typeof producerId === 'number') return BigInt(producerId)
  return typeof producerId.value === 'bigint' ? producerId.value : undefined
}

function hasTimes({ messages }: TimedPartition): boolean {
  return messages.some(({ timestamp }) => timestamp !== undefined && timestamp !== null)
}
