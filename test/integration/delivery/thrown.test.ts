import process from 'node:process'
import { expect, onTestFinished, test } from 'vitest'
import { createAddressPolicy } from '../../../src/address/policy.ts'
import { createSender, type Exchange } from '../../../src/delivery/send/sender.ts'
import { answer, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'

/**
 * Tests of errors in Sluice's own code that handles an outcome. For example, writing a log line fails if the
 * disk is full.
 */

const fault = new Error('the line can not be written')

/**
 * Collects the uncaught exceptions of this process. Removes the listeners that would end the process, until
 * the test ends.
 */
function uncaught(): unknown[] {
  const errors: unknown[] = []
  const take = (error: unknown): void => void errors.push(error)
  const before = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException')
  process.on('uncaughtException', take)
  onTestFinished(() => {
    process.off('uncaughtException', take)
    for (const listener of before) process.on('uncaughtException', listener)
  })
  return errors
}

test.each([
  ['answered', '/taken', 0],
  ['released', '/taken', 0],
  ['answered', '/failing', 2_000],
  ['released', '/failing', 2_000],
] as const)(
  'an error in `%s` after an answer of %s (%i bytes of it are kept) ends the process, and is not swallowed',
  async (failing, path, keptAnswerBytes) => {
    const receiver = await startReceiver({ '/taken': answer(200), '/failing': answer(500) })
    onTestFinished(() => receiver.stop())
    const policy = createAddressPolicy(['127.0.0.1'])
    const sender = createSender({ policy, timeoutMs: 5_000, poolIdleMs: 10_000, keptAnswerBytes })
    onTestFinished(() => sender.close())
    const errors = uncaught()
    const calls: string[] = []
    const take = (name: keyof Exchange): void => {
      calls.push(name)
      if (name === failing) throw fault
    }
    sender.post({ origin: receiver.origin, path, headers: [] }, Buffer.from('{}'), [], {
      answered: () => take('answered'),
      released: () => take('released'),
    })
    await until('the exchange is over', () => calls.includes('released'))
    await until('the error is uncaught', () => errors.length > 0)
    expect(errors).toEqual([fault])
    expect(calls).toEqual(['answered', 'released'])
  },
)
