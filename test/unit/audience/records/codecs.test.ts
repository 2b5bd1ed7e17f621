import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  compareStored,
  decodeEntry,
  encodeEntry,
  hasIdMark,
  idMarkOf,
  isMemberText,
  place,
  type PropertyEntry,
} from '../../../../src/audience/store/entry.ts'
import { deleteOf, identifyOf } from '../../../../src/audience/records/made-message.ts'
import {
  decodeState,
  encodeDeletionFloor,
  encodeState,
  encodeStateKey,
  encodeSyncFloor,
} from '../../../../src/audience/records/state-record.ts'
import { MAX_MESSAGE_ID_CHARACTERS } from '../../../../src/message/message-schemas.ts'
import { escapeId, storeKeyOf, stateKeyOf, unescapeId } from '../../../../src/audience/store/store-keys.ts'
import { compareVersions, formatVersion, parseVersion } from '../../../../src/audience/records/version.ts'
import { id, state, stateKey, version } from './arbitraries.ts'

const runs = { numRuns: 1_000 }
const firstVersion = { atMs: 1, isNative: true, partition: 0, offset: 0 }

function bestEntry(entries: readonly PropertyEntry[]): PropertyEntry | undefined {
  let held: PropertyEntry | undefined
  for (const entry of entries) {
    const { best } = place(entry, held)
    if (best.kind === 'property') held = best
  }
  return held
}

describe('versions', () => {
  test('are in one order', () => {
    fc.assert(
      fc.property(version, version, version, (a, b, c) => {
        expect(Math.sign(compareVersions(a, b)) + Math.sign(compareVersions(b, a))).toBe(0)
        if (compareVersions(a, b) <= 0 && compareVersions(b, c) <= 0) {
          expect(compareVersions(a, c)).toBeLessThanOrEqual(0)
        }
        expect(compareVersions(a, b) === 0).toBe(formatVersion(a) === formatVersion(b))
      }),
      runs,
    )
  })

  test('one from the own partition is above one that was moved, at the same time only', () => {
    const native = { atMs: 5, isNative: true, partition: 0, offset: 1 }
    const moved = { atMs: 5, isNative: false, partition: 7, offset: 9 }
    expect(compareVersions(native, moved)).toBeGreaterThan(0)
    expect(compareVersions(native, { ...moved, atMs: 6 })).toBeLessThan(0)
  })

  test('are read as they were written', () => {
    fc.assert(
      fc.property(version, (one) => {
        expect(parseVersion(formatVersion(one))).toEqual(one)
      }),
      runs,
    )
  })

  test('of any other text there is none', () => {
    for (const text of [
      '',
      '1.1.1',
      '1.2.1.1',
      '1.1.1.1.1',
      'x.1.1.1',
      '1.1.-1.1',
      '01.1.1.1',
      '1.1.1.1e3',
    ]) {
      expect(parseVersion(text)).toBeUndefined()
    }
    fc.assert(
      fc.property(fc.string(), (text) => {
        const read = parseVersion(text)
        if (read !== undefined) expect(formatVersion(read)).toBe(text)
      }),
      runs,
    )
  })
})

describe('records of memberships', () => {
  test('a state is read as it was written', () => {
    fc.assert(
      fc.property(stateKey, state, fc.boolean(), (of, held, isSilent) => {
        expect(decodeState(encodeStateKey(of), encodeState(held, isSilent))).toEqual({
          ok: true,
          record: { stateKey: of, state: held, isSilent },
        })
        expect(decodeState(encodeStateKey(of), null)).toEqual({
          ok: true,
          record: { stateKey: of, state: null },
        })
      }),
      runs,
    )
  })

  test('floors are read as they were written', () => {
    fc.assert(
      fc.property(id, id, version, (first, second, at) => {
        const deletion = { kind: 'deletion', userId: first, sourceId: second } as const
        const floor = { requestedAtMs: at.atMs, requestId: first, partition: at.partition, offset: at.offset }
        expect(decodeState(encodeStateKey(deletion), encodeDeletionFloor(floor))).toEqual({
          ok: true,
          record: { stateKey: deletion, state: floor },
        })
        const sync = { kind: 'sync', spaceId: first, audienceId: second } as const
        const applied = { version: at, syncId: second }
        expect(decodeState(encodeStateKey(sync), encodeSyncFloor(applied))).toEqual({
          ok: true,
          record: { stateKey: sync, state: applied },
        })
      }),
      runs,
    )
  })

  test('whatever the bytes are, reading them does not throw', () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 60 }).map((array) => Buffer.from(array)),
      fc.json().map((text) => Buffer.from(text)),
      stateKey.map(encodeStateKey),
    )
    fc.assert(
      fc.property(bytes, bytes, (key, value) => {
        decodeState(key, value)
      }),
      runs,
    )
    expect(decodeState(null, null).ok).toBe(false)
  })
})

describe('keys of the store', () => {
  test('are told apart, and lead back to what they are of', () => {
    const any = fc.oneof(
      stateKey,
      fc.record({ kind: fc.constant('deletion' as const), userId: id, sourceId: id }),
      fc.record({ kind: fc.constant('sync' as const), spaceId: id, audienceId: id }),
    )
    fc.assert(
      fc.property(any, (of) => {
        expect(stateKeyOf(storeKeyOf(of))).toEqual(of)
        expect(Buffer.from(storeKeyOf(of)).toString()).toBe(storeKeyOf(of))
      }),
      runs,
    )
  })

  test('the order of their bytes is the order of the ids', () => {
    fc.assert(
      fc.property(id, id, (a, b) => {
        expect(unescapeId(escapeId(a))).toBe(a)
        const order = Buffer.compare(Buffer.from(escapeId(a)), Buffer.from(escapeId(b)))
        expect(order).toBe(a < b ? -1 : a > b ? 1 : 0)
        expect(order).toBe(escapeId(a) < escapeId(b) ? -1 : escapeId(a) > escapeId(b) ? 1 : 0)
      }),
      runs,
    )
  })
})

describe('what the store holds', () => {
  test('a state is read as it was stored', () => {
    fc.assert(
      fc.property(state, fc.nat(), id, (held, offset, other) => {
        const entry = { kind: 'property' as const, state: held, offset }
        const text = encodeEntry(entry) ?? ''
        expect(decodeEntry(text)).toEqual(entry)
        expect(Buffer.from(text).toString()).toBe(text)
        expect(isMemberText(text)).toBe(held.kind === 'audience' && held.value === 'true')
        expect(hasIdMark(text, idMarkOf(held.id))).toBe(held.kind === 'audience')
        if (other !== held.id) expect(hasIdMark(text, idMarkOf(other))).toBe(false)
      }),
      runs,
    )
  })

  test('how it stands to a change is told from its text', () => {
    fc.assert(
      fc.property(state, version, fc.nat(), fc.boolean(), id, (held, at, offset, isSame, other) => {
        const text = encodeEntry({ kind: 'property', state: held, offset }) ?? ''
        const { kind, id: of } = held
        const version_ = isSame ? held.version : at
        const order = compareStored(text, { kind, id: of, version: version_ })
        expect(Math.sign(order ?? NaN)).toBe(Math.sign(compareVersions(held.version, version_)))
        expect(
          compareStored(text, { kind: kind === 'trait' ? 'audience' : 'trait', id: of, version: at }),
        ).toBe(undefined)
        if (other !== of) expect(compareStored(text, { kind, id: other, version: at })).toBe(undefined)
      }),
      runs,
    )
    const floor = encodeEntry({
      kind: 'sync',
      state: { version: { ...firstVersion }, syncId: 'a' },
      offset: 1,
    })
    expect(compareStored(floor ?? '', { kind: 'audience', id: 'a', version: firstVersion })).toBe(undefined)
  })

  test('floors are read as they were stored', () => {
    fc.assert(
      fc.property(id, version, fc.nat(), (name, at, offset) => {
        const deletion = {
          kind: 'deletion' as const,
          state: { requestedAtMs: at.atMs, requestId: name, partition: at.partition, offset: at.offset },
          offset,
        }
        expect(decodeEntry(encodeEntry(deletion) ?? '')).toEqual(deletion)
        const sync = { kind: 'sync' as const, state: { version: at, syncId: name }, offset }
        const text = encodeEntry(sync) ?? ''
        expect(decodeEntry(text)).toEqual(sync)
        expect(Buffer.from(text).toString()).toBe(text)
      }),
      runs,
    )
  })

  test('in whatever order records are read, the same is held', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(state, fc.nat({ max: 2 })), { minLength: 1, maxLength: 6 }),
        fc.nat(),
        (states, seed) => {
          const entries = states.map(([one, atMs], offset) => {
            const at = { ...one.version, atMs }
            return { kind: 'property' as const, state: { ...one, version: at, since: at }, offset }
          })
          const shuffled = entries.toSorted(
            (a, b) => ((a.offset * 7 + seed) % 5) - ((b.offset * 7 + seed) % 5),
          )
          const [a, b] = [bestEntry(entries), bestEntry(shuffled)]
          expect(a?.state.version).toEqual(b?.state.version)
        },
      ),
      runs,
    )
  })
})

describe('messages', () => {
  test('an Identify is canonical, whatever is in it', () => {
    fc.assert(
      fc.property(stateKey, state, (of, held) => {
        const { body, messageId } = identifyOf(of, held)
        const text = body.toString()
        expect(JSON.stringify(JSON.parse(text))).toBe(text)
        expect(messageId.length).toBeLessThanOrEqual(100)
        const message = JSON.parse(text)
        expect(message.userId).toBe(of.userId)
        expect(Object.entries(message.traits)).toEqual([[of.property, JSON.parse(held.value)]])
        expect(message.context.personas).toEqual({
          computation_class: held.kind,
          computation_id: held.id,
          computation_key: of.property,
          namespace: of.spaceId,
          space_id: of.spaceId,
        })
      }),
      runs,
    )
  })

  test('the same value has the same messageId, another one has another', () => {
    fc.assert(
      fc.property(stateKey, state, version, (of, held, at) => {
        const { messageId } = identifyOf(of, held)
        expect(identifyOf(of, { ...held, version: at }).messageId).toBe(messageId)
        const isSame = compareVersions(at, held.since) === 0
        expect(identifyOf(of, { ...held, since: at }).messageId === messageId).toBe(isSame)
      }),
      runs,
    )
  })

  test('a delete names its request and its source', () => {
    const made = deleteOf({ userId: 'u"1', sourceId: 'sh"op' }, { requestId: 'r-1', requestedAtMs: 0 })
    expect(made.sourceId).toBe('sh"op')
    expect(made.messageId).toMatch(/^delete-r-1-[\w-]{12}$/)
    expect(made.body.toString()).toBe(
      `{"type":"delete","messageId":"${made.messageId}","userId":"u\\"1",` +
        `"timestamp":"1970-01-01T00:00:00.000Z","context":{"sourceId":"sh\\"op"}}`,
    )
  })

  test('a delete has the same bytes each time, an id that no other request or source has, and a canonical body', () => {
    const requestIds = fc.string({
      unit: fc.constantFrom('a', 'b', '-', '"', '\\', '~'),
      minLength: 1,
      maxLength: 80,
    })
    const requested = fc.record({
      requestId: requestIds,
      sourceId: fc.string({ unit: 'binary', minLength: 1 }),
    })
    fc.assert(
      fc.property(requested, requested, (one, other) => {
        const [first, again, second] = [one, { ...one }, other].map(({ requestId, sourceId }) =>
          deleteOf({ userId: 'u', sourceId }, { requestId, requestedAtMs: 1 }),
        )
        expect(again).toEqual(first)
        const isSame = one.requestId === other.requestId && one.sourceId === other.sourceId
        expect(first?.messageId === second?.messageId).toBe(isSame)
        expect(first?.messageId.length).toBeLessThanOrEqual(MAX_MESSAGE_ID_CHARACTERS)
        expect(String(first?.body)).toBe(JSON.stringify(JSON.parse(String(first?.body))))
      }),
      runs,
    )
  })
})
