import { isDigit, minus } from './json/canonical-number.ts'
import { FieldPlaces } from './field-places.ts'
import { attributesFields, MAX_MESSAGE_ID_CHARACTERS } from './message-schemas.ts'

/** The fields that are read from a message's bytes. Each field has a number, which `FieldPlaces` uses. */
export const Field = {
  // The two nested fields come first. The gateway merges these fields with the same fields of a batch.
  context: 0,
  integrations: 1,
  type: 2,
  version: 3,
  messageId: 4,
  userId: 5,
  anonymousId: 6,
  timestamp: 7,
  event: 8,
  groupId: 9,
  properties: 10,
  traits: 11,
  originalTimestamp: 12,
  sentAt: 13,
  receivedAt: 14,
  writeKey: 15,
} as const
const names = Object.keys(Field)

/**
 * Creates an object for the places of the fields of messages. If `nested` is true, the object also stores the
 * places of the members of `context` and `integrations`.
 */
export function messagePlaces({ nested }: { nested: boolean }): FieldPlaces {
  return new FieldPlaces(names, nested ? 2 : 0)
}

/** The kinds of message whose rules can be checked field by field. */
export const plainKinds = ['identify', 'track', 'page', 'screen', 'group'] as const
export type PlainKind = (typeof plainKinds)[number]

/**
 * The number of the field with the attributes of a message (`properties` or `traits`), by the kind of the
 * message.
 */
export const attributesOf: Readonly<Record<PlainKind, number>> = {
  identify: Field[attributesFields.identify],
  track: Field[attributesFields.track],
  page: Field[attributesFields.page],
  screen: Field[attributesFields.screen],
  group: Field[attributesFields.group],
}

const kinds: ReadonlySet<string | undefined> = new Set(plainKinds)

export function isPlainKind(type: string | undefined): type is PlainKind {
  return kinds.has(type)
}

const spelledKinds = plainKinds.map((kind) => ({ kind, spelled: Buffer.from(`"${kind}"`) }))

/** Returns the kind that a message has as its `type`, or `undefined` if it isn't one of `plainKinds`. */
export function plainKindOf(places: FieldPlaces): PlainKind | undefined {
  for (const { kind, spelled } of spelledKinds) if (places.isSpelled(Field.type, spelled)) return kind
  return undefined
}

/**
 * Returns true if a message meets the event schema's rules for its kind. Doesn't check the rules for
 * `timestamp` and `messageId`. Wrongly returns false for a few valid messages.
 */
export function isSound(places: FieldPlaces, kind: PlainKind): boolean {
  return (
    (places.isFilled(Field.userId) || places.isFilled(Field.anonymousId)) &&
    places.mayBeText(Field.userId) &&
    places.mayBeText(Field.anonymousId) &&
    (kind !== 'track' || places.isFilled(Field.event)) &&
    (kind !== 'group' || places.isFilled(Field.groupId)) &&
    places.mayBeObject(Field.properties) &&
    places.mayBeObject(Field.traits) &&
    places.mayBeObject(Field.integrations) &&
    (!places.has(Field.context) || places.isObject(Field.context)) &&
    (!places.has(Field.version) || isNumber(places.firstByte(Field.version)))
  )
}

/** Returns true if a text may be a `messageId`, because it isn't empty and isn't too long. */
export function isMessageId(text: string | undefined): text is string {
  return text !== undefined && text !== '' && text.length <= MAX_MESSAGE_ID_CHARACTERS
}

function isNumber(first: number | undefined): boolean {
  return first === minus || isDigit(first)
}
