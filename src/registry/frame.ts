/**
 * What a value begins with that is framed for a schema registry (Confluent's wire format). No JSON text
 * begins with it.
 */
export const magicByte = 0

/** After the magic byte four bytes of schema id, big-endian and signed, and then the value itself. */
const headBytes = 5

/** Why a framed value is not read: values of metric labels and of a dead letter's header. */
export type FramedReason =
  /** There is a frame, and no registry is configured. */
  | 'no_schema_registry'
  | 'bad_frame'
  /** The registry says that it has no such schema. */
  | 'unknown_schema'
  /** It has one that can't be read with. */
  | 'unusable_schema'
  /** The value doesn't fit the schema that it names. */
  | 'schema_mismatch'
  /** The same as of plain JSON. */
  | 'not_utf8'
  | 'not_json'
  | 'number_out_of_range'

/** `detail` is one sentence for the producer: what is wrong, what to do. It never quotes the message. */
export type FramedRefusal = { readonly ok: false; readonly reason: FramedReason; readonly detail: string }

/** A value as plain JSON. */
export type PlainValue = { readonly ok: true; readonly value: Buffer }

/** Reads what is in a frame, by one schema. Never throws. */
export type PayloadReader = (payload: Buffer) => PlainValue | FramedRefusal

export type Frame = { readonly ok: true; readonly schemaId: number; readonly payload: Buffer }

export function refuseFramed(reason: FramedReason, detail: string): FramedRefusal {
  return { ok: false, reason, detail }
}

/** Takes a value apart that begins with the magic byte. `payload` is a part of it, no copy. */
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
