import { createRequire } from 'node:module'
import { type FetchedRecord, readRecordBatches } from './record-batch.ts'

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
const magicAt = 16

const require = createRequire(import.meta.url)
let isReplaced = false

/**
 * Puts `readRecordBatches` in the place of kafkajs' own reader: all versions of a fetch response load the one file for it,
 * at the first fetch. Called before the first client is made; fails when kafkajs has no such file.
 */
export function replaceFetchDecoder(): void {
  if (isReplaced) return
  const path = require.resolve(kafkajsFile)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs declares no types for it
  const original = require(path) as DecodeMessages
  const module = require.cache[path]
  if (module === undefined) throw new Error(`${kafkajsFile} can not be replaced`)
  module.exports = decodeMessagesWith(original)
  isReplaced = true
}

function decodeMessagesWith(original: DecodeMessages): DecodeMessages {
  return async (decoder) => {
    const start = decoder.offset
    const length = decoder.readInt32()
    if (length <= 0 || !decoder.canReadBytes(length)) return []
    const bytes = decoder.readBytes(length)
    if (bytes[magicAt] === 2) return readRecordBatches(bytes)
    // Written before Kafka 0.11.
    decoder.offset = start
    return original(decoder)
  }
}
