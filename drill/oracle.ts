import { keyOf } from '../test/support/delivery-book.ts'
import { readWebId } from './clients.ts'
import type { Evidence, ParkedTry } from './evidence.ts'
import { type Destination, destinationsOf } from './fleet.ts'
import { findManyRepeats, findOvertaken } from './queues.ts'
import { findBackward, findRepeats, type Repeat } from './repeats.ts'

/** A promise of Sluice, and whether Sluice has kept it. */
export type Check = {
  promise: string
  isKept: boolean
  /** The result in figures. */
  found: string
  /** The first few violations of the promise, one text each. */
  against: readonly string[]
}

export type Verdict = {
  checks: readonly Check[]
  isPassed: boolean
  /** The missing messages, as `destination/messageId`. */
  gaps: readonly string[]
  repeats: readonly Repeat[]
}

const shown = 10
/**
 * The reasons of the expected dead letters that aren't deliveries. They belong to parts of syncs that a newer
 * sync has replaced. The drill sends incomplete syncs on purpose, and repeats parts that got no answer.
 */
const overtaken = new Set(['sync_outdated', 'sync_incomplete'])

/** Returns the verdict on a drill. */
export function judge(evidence: Evidence): Verdict {
  const gaps = findGaps(evidence)
  const repeats = findRepeats(evidence)
  const checks = [
    ofMessages(evidence, gaps),
    ofDeadLetters(evidence),
    ofAllSettled(evidence),
    ofRepeats(evidence, repeats),
    ofQueuedRepeats(evidence, repeats),
    ofQueuedOrder(evidence),
    ofCommits(evidence),
    ofAudiences(evidence),
    ofDeletedValues(evidence),
    ofDeletes(evidence),
    ofOrder(evidence),
    ofSignatures(evidence),
    check('The gateway left out nothing', evidence.leftOut, 'batches had something left out'),
    check('Nothing ended, stayed away or failed to stop that nobody had ended', evidence.mishaps, 'mishaps'),
    check('No process tells of a fault of its own', evidence.ownFaults, 'lines'),
  ]
  return { checks, isPassed: checks.every(({ isKept }) => isKept), gaps, repeats }
}

function check(promise: string, against: readonly string[], what: string, beside = ''): Check {
  const found = `${against.length.toLocaleString('en')} ${what}${beside}`
  return { promise, isKept: against.length === 0, found, against: against.slice(0, shown) }
}

/** Returns true if every message for the destination must become a dead letter. */
function isRefused({ behaviour }: Destination): boolean {
  return behaviour === 'gone'
}

function findGaps({ acknowledged, deliveries, deadLetters }: Evidence): string[] {
  const dead = new Set(deadLetters.map(({ destination, messageId }) => keyOf(destination, messageId)))
  return acknowledged.flatMap(({ id, source }) =>
    destinationsOf(source).flatMap((destination) => {
      const key = keyOf(destination.id, id)
      const isThere = isRefused(destination)
        ? dead.has(key)
        : deliveries.get(key)?.some(({ isAnswered }) => isAnswered) === true
      return isThere ? [] : [key]
    }),
  )
}

function ofMessages({ acknowledged }: Evidence, gaps: readonly string[]): Check {
  const due = acknowledged.reduce((sum, { source }) => sum + destinationsOf(source).length, 0)
  return check(
    'Every message that was acknowledged has come to each of its destinations',
    gaps,
    'lost',
    ` of ${due.toLocaleString('en')}`,
  )
}

function ofDeadLetters({ deadLetters }: Evidence): Check {
  const gone = new Set(
    destinationsOf('till')
      .filter(isRefused)
      .map(({ id }) => id),
  )
  const wrong = deadLetters
    .filter(({ destination, reason }) =>
      destination === '' ? !overtaken.has(reason) : !(gone.has(destination) && reason === 'failed_for_good'),
    )
    .map(({ destination, messageId, reason, detail }) => `${destination}/${messageId}: ${reason} (${detail})`)
  return check(
    'Only what an endpoint has refused for good, and syncs that newer ones have replaced, are in the dead letters',
    wrong,
    'others',
    ` of ${deadLetters.length.toLocaleString('en')} dead letters`,
  )
}

function ofAllSettled({ lagLeft }: Evidence): Check {
  return {
    promise: 'When all is well again, everything comes to its end',
    isKept: lagLeft === 0,
    found: `${lagLeft.toLocaleString('en')} records not settled at the end`,
    against: [],
  }
}

/**
 * Returns the check that each repeat has a cause. The number of repeats has no limit, because it depends on
 * how often workers are killed and on how much they deliver.
 */
function ofRepeats({ parked }: Evidence, repeats: readonly Repeat[]): Check {
  const unexplained = repeats.filter(({ cause }) => cause === 'unexplained')
  return check(
    'What was delivered more than once was so across a fault, a short time before it',
    unexplained.map(({ deliveries: [first, ...more] }) => {
      const later = more.map(
        ({ worker, arrivedMs }) => `${worker} ${arrivedMs - (first?.arrivedMs ?? 0)} ms later`,
      )
      const key = keyOf(first?.destination ?? '', first?.messageId ?? '')
      const records = parked.filter((one) => one.key === key).map(tellOf)
      return `${key} at ${timeOf(first?.arrivedMs)}: ${first?.worker}, then ${later.join(', ')}; ${records.join(', ')}`
    }),
    'without a cause',
    ` of ${repeats.length.toLocaleString('en')} that were repeated`,
  )
}

/** Tells of a record of a retry topic or of a queue. */
function tellOf({ state, by }: ParkedTry): string {
  return `in ${state} by ${by?.worker ?? 'nobody known'} at ${timeOf(by?.arrivedMs)}`
}

function timeOf(ms = 0): string {
  return new Date(ms).toISOString()
}

function ofQueuedRepeats(evidence: Evidence, repeats: readonly Repeat[]): Check {
  return check(
    'A kill repeats at most as much as a destination with a rate takes in a second',
    findManyRepeats(evidence, repeats),
    'kills with more repeats',
  )
}

/** Returns the check of the order in which messages left the queue of their destination. */
function ofQueuedOrder(evidence: Evidence): Check {
  const { overtaken: late, checked } = findOvertaken(evidence)
  return check(
    'What waits for its turn is sent in its order in each unit, while no worker comes or goes',
    late.map(({ key, by }) => `${key} came after ${by} later ones`),
    'overtaken',
    ` of ${checked.toLocaleString('en')}`,
  )
}

function ofCommits(evidence: Evidence): Check {
  return check(
    'What the group has committed never goes back while Kafka is well',
    findBackward(evidence).map(
      ({ partition, from, to, lostMs }) => `${partition} at ${timeOf(lostMs)}: from ${from} to ${to}`,
    ),
    'times',
    ` (${evidence.backwardCommits.length} while it was in trouble or well)`,
  )
}

function ofAudiences({ audiences }: Evidence): Check {
  const wrong = audiences.flatMap(({ destination, wrong: values }) =>
    values.map(
      ({ user, property, value, has }) =>
        `${destination}: ${user} ${property} is ${JSON.stringify(has)} instead of ${JSON.stringify(value)}`,
    ),
  )
  return check('Every endpoint has the last value of every user', wrong, 'wrong values')
}

function ofDeletedValues({ audiences }: Evidence): Check {
  const late = audiences.flatMap(({ destination, sentTooLate, heldTooLong }) =>
    [...sentTooLate, ...heldTooLong].map((line) => `${destination}: ${line}`),
  )
  return check('Of deleted users nothing older is sent or left', late, 'values')
}

function ofDeletes({ deleted, deletes }: Evidence): Check {
  const due = deleted.flatMap((user) => destinationsOf('shop').map(({ id }) => `${id}/shop/${user}`))
  return check(
    'Every deletion has come to each destination of its source',
    due.filter((one) => !deletes.has(one)),
    'missing',
    ` of ${due.length.toLocaleString('en')}`,
  )
}

/**
 * Returns the check that the messages of each user are in order. Only the first record of a message counts,
 * because a message that a client had to send again is in Kafka more than once.
 */
function ofOrder({ written }: Evidence): Check {
  const seen = new Set<string>()
  const last = new Map<string, number>()
  const wrong: string[] = []
  for (const id of written) {
    const message = readWebId(id)
    if (message === undefined || seen.has(id)) continue
    seen.add(id)
    const { user, number } = message
    if (number < (last.get(user) ?? -1)) wrong.push(`${id} is behind number ${last.get(user)} of ${user}`)
    last.set(user, Math.max(number, last.get(user) ?? -1))
  }
  return check(
    'In Kafka the messages of a user are in the order in which the gateway was sent them',
    wrong,
    'out of order',
    ` of ${seen.size.toLocaleString('en')}`,
  )
}

function ofSignatures({ signatures: { right, wrong } }: Evidence): Check {
  return {
    ...check('Every request is signed as its destination asks for', wrong, 'wrong'),
    found: `${right.toLocaleString('en')} right, ${wrong.length} wrong`,
    isKept: wrong.length === 0 && right > 0,
  }
}
