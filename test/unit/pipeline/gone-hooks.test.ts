import { expect, test } from 'vitest'
import { restrained } from '../../../src/catalog/auto-pause.ts'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import { type Destination, destinationOf, failed, stage, taken, TestRecord } from './stage.ts'

const gone: Outcome = { kind: 'answer', status: 410 }
const [one, two] = ['one', 'two'].map((id) => ({
  id,
  origin: `https://${id}.example`,
  path: '/',
  headers: [],
}))
const hooks = [one, two].filter((hook) => hook !== undefined)

function track(messageId: string) {
  const value = Buffer.from(JSON.stringify({ type: 'track', event: 'e', userId: 'u', messageId }))
  return { key: null, value, headers: { 'source-id': 'shop' } }
}

/** A stage on which a hook that answers 410 is gone, as `AutoPauses` has it. */
function staged(settings: Partial<Destination>, isHonoured = true) {
  const whole = destinationOf('crm', { sources: ['shop'], ...settings })
  const goneHooks: string[] = []
  let destination: Destination = whole
  const catalog = () => ({
    sources: new Map([['shop', { enabled: true }]]),
    destinations: new Map([['crm', destination]]),
    destinationsBySource: new Map([['shop', [destination]]]),
  })
  const all = stage({
    catalog,
    ...(isHonoured && {
      answeredGone(_definition, hookId) {
        goneHooks.push(hookId)
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it only reads hooks and state
        destination = restrained(whole as never, { isPaused: false, goneHooks })
        return true
      },
    }),
  })
  let offset = 0
  const accept = (messageId: string) =>
    all.pipeline.accept(new TestRecord('events', offset++), track(messageId))
  const answer = async (to: string, outcome: Outcome) => {
    all.posted.find((posted) => posted.to === to)?.answer(outcome)
    await all.settle()
  }
  const postedTo = () => all.posted.map(({ to }) => to)
  const repair = () => void (destination = whole)
  const told = () => all.told.map((line) => line.replace(/ \{.*\}/, ''))
  return { ...all, accept, answerAt: answer, postedTo, goneHooks, told, repair }
}

test('the message that saw the 410 waits with those after it, where there is no other URL', async () => {
  const { accept, answerAt, told, postedTo, written } = staged({})
  accept('m-1')
  await answerAt('crm', gone)
  accept('m-2')
  expect(told()).toEqual(['parked crm: paused', 'parked crm: paused'])
  expect(postedTo()).toEqual([])
  expect(written.map(({ topic, headers }) => [topic, headers['failed-hooks']])).toEqual([
    ['retry.1m', undefined],
    ['retry.1m', undefined],
  ])
})

test('once the URL is asked for again, it gets the message that saw the 410', async () => {
  const all = staged({})
  const { accept, answerAt, told, repair, written } = all
  accept('m-1')
  await answerAt('crm', gone)
  repair()
  all.retry(written[0])
  await all.settle()
  await answerAt('crm', taken)
  expect(told()).toEqual(['parked crm: paused', 'delivered crm'])
})

test('without the setting, it is a dead letter as after any other refusal', async () => {
  const { accept, answerAt, told } = staged({}, false)
  accept('m-1')
  await answerAt('crm', gone)
  expect(told()).toEqual(['dead crm: failed_for_good'])
})

test('with failover, the message goes to the next URL, and later ones only there', async () => {
  const { accept, answerAt, told, postedTo } = staged({ hooks, strategy: 'failover' })
  accept('m-1')
  await answerAt('one', gone)
  expect(postedTo()).toEqual(['two'])
  await answerAt('two', taken)
  accept('m-2')
  expect(postedTo()).toEqual(['two'])
  expect(told()).toEqual(['delivered crm'])
})

test('a 410 that comes after the success of another URL counts too', async () => {
  const { accept, answerAt, goneHooks, postedTo } = staged({ hooks })
  accept('m-1')
  await answerAt('two', taken)
  await answerAt('one', gone)
  accept('m-2')
  expect([goneHooks, postedTo()]).toEqual([['one'], ['two']])
})

test('a message waits for its other URL, and is a dead letter if that one refuses it for good', async () => {
  const { accept, answerAt, told } = staged({ hooks })
  accept('m-1')
  await answerAt('one', gone)
  await answerAt('two', failed)
  accept('m-2')
  await answerAt('two', { kind: 'answer', status: 400 })
  expect(told()).toEqual(['parked crm: failed', 'dead crm: failed_for_good'])
})
