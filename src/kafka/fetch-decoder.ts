import { type FetchedRecord, isRecordBatch, readRecordBatches } from './record-batch.ts'
import { replaceFile } from './kafkajs-file.ts'

/** What kafkajs 2.2.4 reads a response with. */
type ResponseDecoder = {
  readonly buffer: Buffer
  offset: number
  readInt32(): number
  canReadBytes(length: number): boolean
  readBytes(length: number): Buffer
}

type DecodeMessages = (decoder: ResponseDecoder) => Promise<readonly FetchedRecord[]>

const kafkajsFile = 'kafkajs/src/protocol/requests/fetch/v4/decodeMessages.js'

/**
 * Puts `readRecordBatches` in the place of kafkajs' own reader: all versions of a fetch response load the one file for it,
 * at the first fetch. Called before the first client is made; fails when kafkajs has no such file.
 */
export function replaceFetchDecoder(): void {
  replaceFile(kafkajsFile, decodeMessagesWith)
}

function decodeMessagesWith(original: DecodeMessages): DecodeMessages {
  return async (decoder) => {
    const start = decoder.offset
    const length = decoder.readInt32()
    if (length <= 0 || !decoder.canReadBytes(length)) return []
    const bytes = decoder.readBytes(length)
    if (isRecordBatch(bytes)) return readRecordBatches(bytes)
    // Written before Kafka 0.11.
    decoder.offset = start
    return original(decoder)
  }
}
