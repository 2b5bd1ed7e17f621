import { ByteReader, ByteWriter } from './bytes.ts'
import { errorCodes } from './error-codes.ts'
import type { WireRequest } from './wire-request.ts'

// The requests of a transactional producer to its coordinator, in versions that aren't flexible (KIP-482).
// Source: the Kafka protocol, and KIP-98.

/** The producer that a transactional id stands for. A later `initProducerId` fences this epoch. */
export type ProducerIdentity = { readonly producerId: bigint; readonly producerEpoch: number }

type Answer = { readonly errorCode: number }

function request<A>(
  apiName: keyof typeof apiKeys,
  write: (out: ByteWriter) => void,
  read: (from: ByteReader) => A,
): WireRequest<A> {
  return {
    apiKey: apiKeys[apiName],
    apiName,
    lowest: 0,
    highest: 1,
    write() {
      const out = new ByteWriter()
      write(out)
      return out.finished()
    },
    read(body) {
      const from = new ByteReader(body)
      // Skips the throttle time.
      from.int32()
      return read(from)
    },
  }
}

const apiKeys = { InitProducerId: 22, AddPartitionsToTxn: 24, EndTxn: 26 } as const

/**
 * Takes a transactional id over. The coordinator aborts the open transaction of the former holder, and
 * refuses its further requests. It also aborts a transaction that stays open for longer than
 * `transactionTimeoutMs`.
 */
export function initProducerId(
  transactionalId: string,
  transactionTimeoutMs: number,
): WireRequest<Answer & ProducerIdentity> {
  return request(
    'InitProducerId',
    (out) => out.string(transactionalId).int32(transactionTimeoutMs),
    (from) => ({ errorCode: from.int16(), producerId: from.bigint(), producerEpoch: from.int16() }),
  )
}

/** Adds partitions to the transaction, one of each topic. The first one opens the transaction. */
export function addPartitionsToTxn(
  transactionalId: string,
  { producerId, producerEpoch }: ProducerIdentity,
  places: readonly { readonly topic: string; readonly partition: number }[],
): WireRequest<Answer> {
  return request(
    'AddPartitionsToTxn',
    (out) => {
      out.string(transactionalId).int64(producerId).int16(producerEpoch)
      out.array(places, ({ topic, partition }) =>
        out.string(topic).array([partition], (one) => out.int32(one)),
      )
    },
    (from) => {
      const codes = from.array(() => {
        from.string()
        return from.array(() => {
          from.int32()
          return from.int16()
        })
      })
      // If one partition can't be added, the broker answers for the others that it didn't try.
      const faulty = codes.flat().filter((code) => code !== errorCodes.NONE)
      const first = faulty.find((code) => code !== errorCodes.OPERATION_NOT_ATTEMPTED)
      return { errorCode: first ?? faulty[0] ?? errorCodes.NONE }
    },
  )
}

/** Commits the open transaction. */
export function commitTxn(
  transactionalId: string,
  { producerId, producerEpoch }: ProducerIdentity,
): WireRequest<Answer> {
  return request(
    'EndTxn',
    (out) => out.string(transactionalId).int64(producerId).int16(producerEpoch).bool(true),
    (from) => ({ errorCode: from.int16() }),
  )
}
