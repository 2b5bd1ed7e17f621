import { expect, test } from 'vitest'
import { BufferAccount } from '../../../src/pipeline/buffer-account.ts'
import { TestRecord } from './stage.ts'

const [stopped, other] = [2, 3]

function open() {
  const account = new BufferAccount({
    buffer: { records: 100, bytes: 100_000 },
    detached: { records: 0, bytes: 0 },
    onPressure: () => undefined,
  })
  /** Holds records of a unit that were pulled from queues. */
  const pull = (partition: number, count: number, bytes = 1) =>
    Array.from({ length: count }, (_, offset) =>
      account.hold(new TestRecord('waiting', offset, { partition }), 1, bytes, true),
    )
  return { account, pull }
}

test.for([
  ['records', 1],
  ['bytes', 1_000],
] as const)(
  'what was pulled of a unit that stands still leaves the others their room for pulled records: %s',
  ([, bytes]) => {
    const { account, pull } = open()
    const pending = pull(stopped, 50, bytes)
    expect(account.freePulled).toBe(0)
    account.setUnitStopped(stopped, true)
    expect(account.freePulled).toBe(50)
    pull(other, 20, bytes)
    expect(account.freePulled).toBe(30)
    for (const one of pending.splice(0, 10)) one.complete()
    expect(account.freePulled).toBe(30)
    account.setUnitStopped(stopped, false)
    expect(account.freePulled).toBe(-10)
    for (const one of pending) one.complete()
    expect(account.freePulled).toBe(30)
  },
)
