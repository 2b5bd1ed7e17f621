import type { Evidence } from '../../../drill/evidence.ts'
import { destinationsOf, type SourceId } from '../../../drill/fleet.ts'
import { keyOf } from '../../support/delivery-book.ts'

/** The time of the first message of the drill, in epoch milliseconds. */
export const startMs = 1_800_000_000_000
export const secondMs = 1_000

const messages: readonly (readonly [id: string, source: SourceId])[] = [
  ['web-0-0', 'web'],
  ['web-0-5', 'web'],
  ['shop-0', 'shop'],
  ['till-0', 'till'],
]

/** Returns the evidence of a small drill in which everything is as it should be. */
export function flawless(): Evidence {
  const acknowledged = messages.map(([id, source], index) => ({
    id,
    source,
    sentMs: startMs + index * secondMs,
  }))
  const due = acknowledged.flatMap(({ id, source, sentMs }) =>
    destinationsOf(source).map(({ id: destination, behaviour }) => ({ id, destination, behaviour, sentMs })),
  )
  const isDead = ({ behaviour }: (typeof due)[number]): boolean => behaviour === 'gone'
  return {
    acknowledged,
    deliveries: new Map(
      due
        .filter((one) => !isDead(one))
        .map(({ id, destination, sentMs }) => [
          keyOf(destination, id),
          [{ destination, messageId: id, worker: 'w1', arrivedMs: sentMs + 20, isAnswered: true }],
        ]),
    ),
    refused: new Map(),
    deadLetters: due.filter(isDead).map(({ id, destination }) => ({
      destination,
      messageId: id,
      reason: 'failed_for_good',
      detail: '404',
    })),
    written: acknowledged.map(({ id }) => id),
    parked: [],
    deleted: ['leaver-0'],
    deletes: new Set(destinationsOf('shop').map(({ id }) => `${id}/shop/leaver-0`)),
    audiences: [{ destination: 'members', wrong: [], sentTooLate: [], heldTooLong: [] }],
    signatures: { right: 10, wrong: [] },
    leftOut: [],
    changes: [],
    happened: [],
    backwardCommits: [],
    mishaps: [],
    ownFaults: [],
    lagLeft: 0,
  }
}
