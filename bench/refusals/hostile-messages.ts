import type { Random } from '../../test/support/random.ts'
import { filled, members, type Piece, values } from './hostile-json.ts'

/** The length of the messages, which is the limit of the gateway. */
const messageBytes = 32 * 1_024

/** A kind of message that should be expensive for `enter`. */
export type HostileMessage = {
  readonly name: string
  readonly make: (random: Random) => Buffer
}

/** The places in a message where pieces are: the text before and after them. */
const places = {
  'in a list': { of: values, open: '{"type":"track","userId":"u","event":"E","x":[', close: ']}' },
  'in an object': { of: members, open: '{"type":"track","userId":"u","event":"E","x":{', close: '}}' },
  'as fields': { of: members, open: '{"type":"page","userId":"u",', close: '}' },
  'in a list of properties': {
    of: values,
    open: '{"type":"page","userId":"u","properties":{"x":[',
    close: ']}}',
  },
  'in integrations': { of: values, open: '{"type":"page","userId":"u","integrations":{"x":[', close: ']}}' },
  'in an alias': { of: values, open: '{"type":"alias","userId":"u","previousId":"p","x":[', close: ']}' },
  'without a user': { of: values, open: '{"type":"track","event":7,"timestamp":"x","x":[', close: ']}' },
} as const satisfies Record<string, { of: readonly Piece[]; open: string; close: string }>

export type MessagePlace = keyof typeof places
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of a literal
const placeNames = Object.keys(places) as MessagePlace[]

/** Returns a message of these pieces. The first piece occurs once, if it is `once`. */
function messageOf(place: MessagePlace, once: Piece | undefined, pieces: readonly Piece[]): HostileMessage {
  const { open, close } = places[place]
  const names = pieces.map(({ name }) => name).join(', ')
  return {
    name: `${once === undefined ? '' : `${once.name} before `}${names} ${place}`,
    make(random) {
      const start = once === undefined ? open : `${open}${once.make(random)},`
      return Buffer.from(filled(pieces, { open: start, close, most: messageBytes, random }))
    },
  }
}

/** The messages that are known to be expensive: each piece in each place, alone and after what isn't canonical. */
export function knownMessages(): readonly HostileMessage[] {
  return placeNames.flatMap((place) => {
    const { of } = places[place]
    const [spoilers] = of === values ? [['a key \\', '1.0']] : [['a fresh key \\', 'an index']]
    const once = [undefined, ...of.filter(({ name }) => spoilers?.includes(name))]
    return of.flatMap((one) => once.map((first) => messageOf(place, first, [one])))
  })
}

/** Returns a random message of one to three kinds of pieces. */
export function anyMessage(random: Random): HostileMessage {
  const place = random.pick(placeNames)
  const { of } = places[place]
  const pieces = Array.from({ length: 1 + random.below(3) }, () => random.pick<Piece>(of))
  return messageOf(place, random.oneIn(2) ? random.pick<Piece>(of) : undefined, pieces)
}
