import type { ReceivedHeaders } from '../message/record-headers.ts'

/**
 * The first byte of a framed value. A framed value names its schema by the id in a schema registry
 * (Confluent's wire format). No JSON text begins with this byte.
 */
export const magicByte = 0

/**
 * The length of a frame's head: the magic byte, and four bytes for the schema id, a signed big-endian
 * integer. The payload follows the head.
 */
const headBytes = 5

/**
 * The reason why a framed value can't be read. The reason is also the value of a metric label, and of a
 * header of dead letters.
 */
export type FramedReason =
  /** The value is framed, but no registry is configured. */
  | 'no_schema_registry'
  | 'bad_frame'
  /** The registry says that it has no such schema. */
  | 'unknown_schema'
  /** The registry has the schema, but Sluice can't read values with it. */
  | 'unusable_schema'
  /** The value doesn't fit the schema that it names. */
  | 'schema_mismatch'
  /** The payload isn't UTF-8. Values of plain JSON can be refused for this reason too. */
  | 'not_utf8'
  | 'not_json'
  | 'number_out_of_range'

/**
 * A refused value. `detail` says to the producer what is wrong. It never quotes the message. The refusals of
 * a `Decoder` also say what to do, in one whole sentence.
 */
export type FramedRefusal = { readonly ok: false; readonly reason: FramedReason; readonly detail: string }

export type PlainValue = { readonly ok: true; readonly value: Buffer }

/** A function that reads the payloads of one schema. It never throws, whatever the payload is. */
export type PayloadReader = (payload: Buffer) => PlainValue | FramedRefusal

export type Frame = { readonly ok: true; readonly schemaId: number; readonly payload: Buffer }

export function refuseFramed(reason: FramedReason, detail: string): FramedRefusal {
  return { ok: false, reason, detail }
}

/** Splits a value that begins with the magic byte. `payload` is a slice of the value, and not a copy. */
export function readFrame(value: Buffer): Frame | FramedRefusal {
  if (value.length < headBytes) {
    return refuseFramed(
      'bad_frame',
      `Send a whole frame: the value ends within its first ${headBytes} bytes.`,
    )
  }
  const schemaId = value.readInt32BE(1)
  if (schemaId < 0) {
    return refuseFramed('bad_frame', `Send a frame with the id of a schema: ${schemaId} can be none.`)
  }
  // Registries count from 1. The ids that Apicurio's producers may write have eight bytes.
  if (schemaId === 0) return refuseFramed('bad_frame', longId)
  return { ok: true, schemaId, payload: value.subarray(headBytes) }
}

const longId =
  "Send the schema's id in 4 bytes after the byte 0: this value has the id 0, as if its id had 8 bytes. Apicurio's producers write 4 bytes with apicurio.registry.id-handler=io.apicurio.registry.serde.Default4ByteIdHandler (Apicurio 2: Legacy4ByteIdHandler)."

/**
 * Headers in which producers name the schema of a value, instead of in front of the value, and what to do
 * about it. The schemas are not read from there: a header may have an id that the API of the registry doesn't
 * know (Apicurio's global id, Confluent's GUID).
 */
const schemaHeaders = {
  'apicurio.value.globalId': 'set apicurio.registry.headers.enabled=false in the producer',
  'apicurio.value.contentId': 'set apicurio.registry.headers.enabled=false in the producer',
  __value_schema_id:
    'set value.schema.id.serializer=io.confluent.kafka.serializers.schema.id.PrefixSchemaIdSerializer in the producer',
}

/**
 * The head of AWS Glue's frames: the byte 3, a byte for the compression (0: none, 5: zlib), and 16 bytes that
 * name the version of the schema.
 */
const glue = { magicByte: 3, compressions: [0, 5], headBytes: 18 }

const openBrace = 0x7b

/** Returns false if a value is certainly no value that `readFrame` or `foreignFrame` knows. */
export function mayBeFramed(value: Buffer | null): boolean {
  return value !== null && value.length > 0 && value[0] !== openBrace
}

/**
 * Returns why a value without the magic byte can't be read, if it was written for another registry, or if
 * its schema is named in a header. Without this, such a value would be called faulty JSON.
 */
export function foreignFrame(value: Buffer, headers: ReceivedHeaders): FramedRefusal | undefined {
  if (isOfGlue(value)) {
    return refuseFramed(
      'bad_frame',
      "Send plain JSON, or values framed for a registry with Confluent's API: this value is framed for the AWS Glue Schema Registry, which Sluice doesn't read.",
    )
  }
  if (headers === undefined || beginsAsObject(value)) return undefined
  for (const [name, advice] of Object.entries(schemaHeaders)) {
    if (headers[name] === undefined) continue
    return refuseFramed(
      'bad_frame',
      `Send the schema's id in front of the value: it is in the header ${name}, and the value is no JSON. To do so, ${advice}.`,
    )
  }
  return undefined
}

function isOfGlue(value: Buffer): boolean {
  const [first, compression = -1] = value
  return first === glue.magicByte && glue.compressions.includes(compression) && value.length >= glue.headBytes
}

/** Returns true if a value is a JSON object as far as its beginning shows, and needs no schema. */
function beginsAsObject(value: Buffer): boolean {
  const first = value.find((byte) => byte !== 0x20 && (byte < 0x09 || byte > 0x0d))
  return first === openBrace
}
