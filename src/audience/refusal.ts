import type { AudienceDeadReason } from '../message/dead-letter-reasons.ts'

/**
 * The refusal of a record. `detail` is one sentence that tells the producer what is wrong and what to do. The
 * sentence quotes nothing from the record except the names of fields.
 */
export type AudienceRefusal = { ok: false; reason: AudienceDeadReason; detail: string }

export function refusal(reason: AudienceDeadReason, detail: string): AudienceRefusal {
  return { ok: false, reason, detail }
}

type SchemaError = { keyword: string; instancePath: string; message: string }

/** Describes the first field that violates a schema. */
export function faultOf(errors: readonly SchemaError[]): string {
  const [first] = errors
  const path = (first?.instancePath ?? '').slice(1).replaceAll('/', '.').slice(0, maxNameCharacters)
  // TypeBox reports an unknown field as a violation of the schema `false`.
  const fault =
    first?.keyword === 'boolean' ? 'is not a known field' : (first?.message ?? 'is not as it has to be')
  return `${path === '' ? 'the value' : path} ${fault.slice(0, maxFaultCharacters)}`
}

const maxNameCharacters = 100
const maxFaultCharacters = 200
