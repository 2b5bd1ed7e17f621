import { randomUUID } from 'node:crypto'
import type { Config } from '../config/schema.ts'
import type { createKafka } from '../kafka/client.ts'
import { type ProduceResult, startProducer, whileAnyFails } from '../kafka/producer.ts'
import { maxRetryRecordBytes } from '../kafka/topic-list.ts'
import { within } from '../kafka/within.ts'
import { partitionKey } from '../message/partition-key.ts'
import { isAbsent, validate } from '../message/validate.ts'
import { askKafka, openKafka } from './ask-kafka.ts'
import { grouped } from './progress.ts'
import { topicNames } from './settings.ts'
import { StartError } from './start-error.ts'

type Log = Parameters<typeof createKafka>[1]

/** How long Kafka may acknowledge no message before the command gives up, in milliseconds. */
const takeTimeoutMs = 15_000

/**
 * Produces messages to the topic `events` like an upstream service: keyed by user, and with the header
 * `source-id`. `lines` are JSON objects. Checks all messages before it sends the first message. Returns a
 * line for each sent message.
 */
export async function sendMessages(
  config: Config,
  log: Log,
  { sourceId, lines }: { sourceId: string; lines: readonly string[] },
): Promise<string[]> {
  const messages = lines.map((line, index) =>
    readMessage(line, lines.length > 1 ? `line ${index + 1}: ` : ''),
  )
  const producer = await askKafka(
    config,
    startProducer({
      kafka: await openKafka(config, log, 'send'),
      maxRecordBytes: maxRetryRecordBytes(config.message.maxBytes),
      onFailing: whileAnyFails((isFailing, reason) => {
        if (isFailing) log.warn({ reason }, 'Kafka does not accept the message yet, trying again')
      }),
    }),
  )
  const { events } = topicNames(config)
  let sent = 0
  async function send({ key, text }: Message): Promise<ProduceResult> {
    const headers = { 'source-id': sourceId }
    const result = await producer.produce({
      topic: events,
      key: Buffer.from(key),
      value: Buffer.from(text),
      headers,
    })
    sent++
    return result
  }
  try {
    const all = Promise.all(messages.map(send))
    // Many messages may take long. So the time begins anew as long as Kafka acknowledges some of them.
    for (let before = 0; !(await within(takeTimeoutMs, all)); before = sent)
      if (sent === before) throw new StartError(complaint(events, sent, messages.length))
    const results = await all
    if (results.includes('refused')) throw new StartError('A message is too large for the topic.')
    return messages.map(({ messageId }) => `sent ${messageId}`)
  } finally {
    await producer.stop()
  }
}

function complaint(topic: string, sent: number, count: number): string {
  const seconds = takeTimeoutMs / 1_000
  if (sent === 0) return `Kafka accepted nothing in ${seconds} s: does ${topic} exist? (sluice topics apply)`
  return (
    `Kafka accepted ${grouped(sent)} of ${grouped(count)} messages, and then nothing in ${seconds} s. ` +
    'Whoever sends all of them again sends these twice: only a messageId in each lets Sluice drop the second.'
  )
}

type Message = { key: string; text: string; messageId: string }

/** Checks a message. If the message has no `messageId`, adds one, so that the message can be found later. */
function readMessage(line: string, where: string): Message {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch (error) {
    throw new StartError(
      `${where}the message is not JSON: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  const validated = validate(value)
  if (!validated.ok) throw new StartError(`${where}${validated.reason}: ${validated.detail}`)
  const { message } = validated
  const key = partitionKey(message)
  if (key === undefined) throw new StartError(`${where}the message names no user`)
  const messageId = isAbsent(message.messageId) ? randomUUID() : message.messageId
  return { key, text: JSON.stringify({ ...message, messageId }), messageId }
}
