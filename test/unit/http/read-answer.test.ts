import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { afterEach, expect, test } from 'vitest'
import { readAnswer } from '../../../src/http/read-answer.ts'
import { answer, type Receiver, startReceiver } from '../../support/receiver.ts'

let receiver: Receiver | undefined
afterEach(() => receiver?.stop())

async function answered(body: string): Promise<IncomingMessage> {
  receiver = await startReceiver(answer(200, {}, body))
  const [response]: IncomingMessage[] = await once(get(receiver.origin), 'response')
  if (response === undefined) throw new Error('no answer came')
  return response
}

test('an answer is read without the byte order mark that some servers write before their JSON', async () => {
  expect(await readAnswer(await answered('\ufeff{"schema":"é"}'), 100)).toBe('{"schema":"é"}')
})

test('an answer over the limit is not read', async () => {
  await expect(readAnswer(await answered('x'.repeat(101)), 100)).rejects.toThrow('its answer is over 100')
})
