import { text } from 'node:stream/consumers'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { testDestination, type TestOrder } from '../../roles/operations/destination-test.ts'
import { isAccepted, testData, testLines } from '../../roles/operations/destination-test-text.ts'
import { readCatalog } from '../../roles/catalog/open-catalog.ts'
import { WrongUseError } from '../../roles/start/start-error.ts'
import { openInput } from '../command/upstream-input.ts'

/**
 * Sends a test message to a destination, and describes in lines what came of it. If the message is `-`, it is
 * read from standard input. `areAllAccepted`: true if every hook accepted the message.
 */
export async function tryDestination(
  config: Config,
  log: Logger,
  order: TestOrder,
  { asJson }: { asJson: boolean },
): Promise<{ lines: readonly string[]; areAllAccepted: boolean }> {
  // An argument can't be as long as a message.
  const message = order.message === '-' ? await text((await openInput('-')).chunks) : order.message
  const tested = await testDestination(config, await readCatalog(config, log, 'destinations'), {
    ...order,
    message,
  })
  if (!tested.ok) throw new WrongUseError(tested.problem)
  const test = tested.value
  return {
    lines: asJson ? [JSON.stringify(testData(test))] : testLines(test),
    areAllAccepted: isAccepted(test),
  }
}
