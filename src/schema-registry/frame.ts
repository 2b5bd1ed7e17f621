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
  return { ok: true, schemaId, payload: value.subarray(headBytes) }
}
