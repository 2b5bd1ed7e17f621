import { Compile } from 'typebox/compile'
import {
  propertyChange,
  syncPartCheck,
  type PropertyChange,
  type SyncPart,
} from '../../message/audience-change.ts'
import { holdsInfinite } from '../../message/json/json.ts'
import type { MessageLimits } from '../../message/limits.ts'
import { partitionOf } from '../../message/partitioner.ts'
import { readJson, type AudienceRefusal, faultOf, refusal, readTime } from './record-json.ts'
import { propertyName } from './property-name.ts'
import type { Version, PropertyStateKey } from './version.ts'

/** The place at which a record of `audience-changes` was read, and the space to which the record belongs. */
export type ChangePlace = {
  readonly spaceId: string
  readonly partition: number
  readonly offset: number
  /** The time at which the broker appended the record, in epoch milliseconds. */
  readonly timestampMs: number
  /**
   * The partition and offset of the original record, if Sluice moved the change to this partition from
   * another one.
   */
  readonly origin: { readonly partition: number; readonly offset: number } | undefined
}

/** A new value of one property of one user, or a confirmation of the present value. */
export type Change = {
  readonly stateKey: PropertyStateKey
  readonly kind: 'audience' | 'trait'
  readonly id: string
  readonly name: string
  /** The value of the property, as canonical JSON. */
  readonly value: string
  readonly version: Version
  /** The partition to which the user belongs. */
  readonly unit: number
}

/** One part of a sync of an audience, for one partition. */
export type Part = {
  readonly spaceId: string
  readonly audienceId: string
  readonly name: string
  readonly property: string
  readonly syncId: string
  readonly snapshotAtMs: number
  readonly part: number
  readonly parts: number
  readonly userIds: readonly string[]
}

export type ReadChange =
  | { ok: true; kind: 'change'; change: Change }
  | { ok: true; kind: 'part'; part: Part }
  | AudienceRefusal

export type ChangeRules = {
  readonly limits: MessageLimits
  readonly partitions: number
  /**
   * The number of partitions before the topics last grew. A record that was in its user's partition before
   * the growth keeps its version.
   */
  readonly formerPartitions?: number | undefined
}

const [membershipSchema, traitSchema] = propertyChange.anyOf
const membershipCheck = Compile(membershipSchema)
const traitCheck = Compile(traitSchema)

/** Reads the value of a record of `audience-changes`. Never throws, whatever the bytes are. */
export function readChange(value: Uint8Array | null, place: ChangePlace, rules: ChangeRules): ReadChange {
  const read = readJson(value, rules.limits)
  if (!read.ok) return read
  const given = read.fields
  switch (given['type']) {
    case 'membership':
      if (!isMembership(given)) return badChange(membershipCheck.Errors(given))
      return readOne(
        given,
        {
          kind: 'audience',
          id: given.audienceId,
          name: given.audienceName,
          key: given.audienceKey ?? undefined,
        },
        given.member ? 'true' : 'false',
        place,
        rules,
      )
    case 'trait': {
      if (!isTrait(given)) return badChange(traitCheck.Errors(given))
      const json = JSON.stringify(given.value)
      // The value can get longer, because for example 1e20 is written out.
      if (Buffer.byteLength(json) > rules.limits.maxBytes) {
        const { maxBytes } = rules.limits
        return refusal('body_too_large', `Send less: written out, the value is over ${maxBytes} bytes.`)
      }
      // JSON.stringify writes an infinite number as null. So a value whose JSON has no null contains no
      // infinite number.
      if (json.includes('null') && holdsInfinite(given.value)) {
        return refusal('number_out_of_range', 'Send numbers up to 1.7e308, and larger ones as strings.')
      }
      return readOne(
        given,
        { kind: 'trait', id: given.traitId, name: given.traitName, key: given.traitKey ?? undefined },
        json,
        place,
        rules,
      )
    }
    case 'sync':
      return isPart(given) ? readPart(given, place) : badChange(syncPartCheck.Errors(given))
    default:
      return refusal('bad_change', 'Set type to membership, trait or sync.')
  }
}

type Named = { kind: 'audience' | 'trait'; id: string; name: string; key: string | undefined }

function readOne(
  given: PropertyChange,
  { kind, id, name, key }: Named,
  value: string,
  place: ChangePlace,
  rules: ChangeRules,
): ReadChange {
  const time = readTime('changedAt', given.changedAt, place.timestampMs)
  if (!time.ok) return time
  const property = propertyName({ key, name })
  if (property === undefined) return badName(kind)
  const { userId } = given
  const { spaceId, origin } = place
  const unit = partitionOf(userId, rules.partitions)
  const { partition, offset } = origin ?? place
  const isNative =
    (origin === undefined && unit === partition) || wasNative(userId, partition, rules.formerPartitions)
  return {
    ok: true,
    kind: 'change',
    change: {
      stateKey: { kind: 'property', userId, spaceId, property },
      kind,
      id,
      name,
      value,
      version: { atMs: time.ms, isNative, partition, offset },
      unit,
    },
  }
}

function wasNative(userId: string, partition: number, formerPartitions: number | undefined): boolean {
  return formerPartitions !== undefined && partitionOf(userId, formerPartitions) === partition
}

function readPart(given: SyncPart, { spaceId, timestampMs }: ChangePlace): ReadChange {
  const { audienceId, audienceName: name, audienceKey: key, syncId, part, parts, userIds } = given
  const time = readTime('snapshotAt', given.snapshotAt, timestampMs)
  if (!time.ok) return time
  const property = propertyName({ key: key ?? undefined, name })
  if (property === undefined) return badName('audience')
  if (part > parts) {
    return refusal('bad_change', 'Number the parts of a sync from 1 to parts: part is above parts.')
  }
  if (parts > maxParts) {
    return refusal(
      'sync_too_large',
      `Send larger parts: a partition takes ${maxParts} of one sync at the most.`,
    )
  }
  const read = { spaceId, audienceId, name, property, syncId, snapshotAtMs: time.ms, part, parts, userIds }
  return { ok: true, kind: 'part', part: read }
}

/** Limit on the parts of one sync in a partition. Each part is kept until the sync is applied. */
const maxParts = 100_000

function badName(kind: 'audience' | 'trait'): AudienceRefusal {
  return refusal(
    'bad_property_name',
    `Give the ${kind} a name with a letter or a digit in it, or set ${kind}Key: nothing is left of it as a property name.`,
  )
}

function badChange(errors: Parameters<typeof faultOf>[0]): AudienceRefusal {
  return refusal('bad_change', `Send what schemas/audience-change.schema.json describes: ${faultOf(errors)}.`)
}

type Membership = Extract<PropertyChange, { type: 'membership' }>
type Trait = Extract<PropertyChange, { type: 'trait' }>

function isMembership(value: unknown): value is Membership {
  return membershipCheck.Check(value)
}

function isTrait(value: unknown): value is Trait {
  return traitCheck.Check(value)
}

function isPart(value: unknown): value is SyncPart {
  return syncPartCheck.Check(value)
}
