import { randomUUID } from 'node:crypto'
import type { Config } from '../config/schema.ts'
import type { Logger } from 'pino'
import { type ProduceResult, startProducer, whileAnyFails } from '../kafka/produce/producer.ts'
import { maxRetryRecordBytes } from '../topics/topic-list.ts'
import { within } from '../async/within.ts'
import { enter } from '../message/enter.ts'
import { holdsInfinite, parseJson } from '../message/json/json.ts'
import type { MessageLimits } from '../message/limits.ts'
import { isAbsent, validate } from '../message/validate.ts'
import { eachLine } from '../audience-files/file-lines.ts'
import { askKafka, openKafka } from '../roles/start/ask-kafka.ts'
import { grouped } from '../roles/start/progress.ts'
import { topicNames } from '../roles/start/settings.ts'
import { StartError, WrongUseError } from '../roles/start/start-error.ts'
import { openInput, readingInput } from './command/upstream-input.ts'
import { partitionKey } from '../message/partitioner.ts'
import { refuseUnknownSource } from './command/known-source.ts'
import { writeError } from './command/tools.ts'

/** How long Kafka may acknowledge no message before the command gives up, in milliseconds. */
const takeTimeoutMs = 15_000

/**
 * Produces messages to the topic `events` like an upstream service: keyed by user, and with the header
 * `source-id`. The messages are JSON objects, one on each line. They come from `message`, or from standard
 * input if `message` is absent. Checks all messages before it sends the first message, and that the catalog
 * has the source, unless `isAnySource`. Returns a line for each sent message.
 */
export async function sendMessages(
  config: Config,
  log: Logger,
  {
    sourceId,
    message: given,
    isAnySource,
  }: { sourceId: string; message: string | undefined; isAnySource: boolean },
): Promise<string[]> {
  if (sourceId === '') throw new WrongUseError('--source has to be the id of a source of the catalog.')
  const messages = await readMessages(given, config.message)
  const unchecked = await refuseUnknownSource(config, log, { sourceId, role: 'send', isAnySource })
  if (unchecked !== undefined) writeError(unchecked)
  let trouble: string | undefined
  const producer = await askKafka(
    config,
    startProducer({
      kafka: await openKafka(config, log, 'send'),
      maxRecordBytes: maxRetryRecordBytes(config.message.maxBytes),
      onFailing: whileAnyFails((isFailing, reason) => {
        trouble = isFailing ? reason : undefined
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
    // Many messages may take long. So the wait begins again each time that Kafka has acknowledged some of
    // them, and when a throttle that a broker has announced is over.
    for (let before = 0; !(await within(takeTimeoutMs, all, () => producer.readsFromMs)); before = sent)
      if (sent === before) throw new StartError(complaint(events, { sent, count: messages.length, trouble }))
    const results = await all
    const refused = results.filter((result) => result === 'refused').length
    if (refused > 0) throw new StartError(`${tooLarge(refused, messages.length)} for ${events}.`)
    return messages.map(({ messageId }) => `sent ${messageId}`)
  } finally {
    await producer.stop()
  }
}

function tooLarge(refused: number, count: number): string {
  if (count === 1) return 'The message is too large'
  if (refused === count) return 'All messages are too large'
  return `${grouped(count - refused)} of ${grouped(count)} messages were sent: the others are too large`
}

type SoFar = { sent: number; count: number; trouble: string | undefined }

function complaint(topic: string, { sent, count, trouble }: SoFar): string {
  const seconds = takeTimeoutMs / 1_000
  const why = trouble === undefined ? '' : ` (${trouble})`
  if (sent === 0)
    return `Kafka accepted nothing in ${seconds} s${why}: does ${topic} exist? (sluice topics apply)`
  return (
    `Kafka accepted ${grouped(sent)} of ${grouped(count)} messages, and then nothing in ${seconds} s${why}. ` +
    'Whoever sends all of them again sends these twice: only a messageId in each lets Sluice drop the second.'
  )
}

type Message = { key: string; text: string; messageId: string }

/** Reads and checks all messages. Throws at the first one that is faulty, or if there is none. */
async function readMessages(given: string | undefined, limits: MessageLimits): Promise<Message[]> {
  const chunks = given === undefined ? (await openInput('-')).chunks : only(Buffer.from(given))
  const lines: { text: string; line: number }[] = []
  const read = await readingInput('standard input', () =>
    eachLine(chunks, (text, line) => {
      lines.push({ text, line })
      return undefined
    }),
  )
  if (!read.ok) throw new StartError(`line ${read.fault.line}: ${read.fault.problem}. Nothing was sent.`)
  if (lines.length === 0)
    throw new StartError(
      'There is no message: give one as an argument, or write messages to standard input, one a line.',
    )
  return lines.map(({ text, line }) => {
    const where = lines.length > 1 ? `line ${line}: ` : ''
    const message = readMessage(text, where)
    const excess = excessOf(message, limits)
    if (excess !== undefined) throw refusalOf(where, excess)
    return message
  })
}

async function* only(chunk: Buffer): AsyncGenerator<Buffer> {
  yield chunk
}

/** Checks a message. If the message has no `messageId`, adds one, so that the message can be found later. */
function readMessage(text: string, where: string): Message {
  const parsed = parseJson(text)
  if (!parsed.ok) throw refusalOf(where, `the message is not JSON: ${jsonFault(text)}`)
  const validated = validate(parsed.value)
  if (!validated.ok) throw refusalOf(where, `${validated.reason}: ${validated.detail}`)
  const { message } = validated
  if (holdsInfinite(message))
    throw refusalOf(where, 'the message has a number over 1.7e308: send larger ones as text')
  const key = partitionKey(message)
  if (key === undefined) throw refusalOf(where, 'the message names no user')
  const messageId = isAbsent(message.messageId) ? randomUUID() : message.messageId
  return { key, text: JSON.stringify({ ...message, messageId }), messageId }
}

/** Returns the error of a faulty message. `where` is the message's line if there are several messages. */
function refusalOf(where: string, problem: string): StartError {
  return new StartError(where === '' ? problem : `${where}${problem.replace(/\.$/, '')}. Nothing was sent.`)
}

/** Returns the reason why a worker would refuse a message because of a limit. */
function excessOf({ key, text }: Message, limits: MessageLimits): string | undefined {
  const entered = enter(
    Buffer.from(text),
    { topic: '', partition: 0, offset: 0, timestampMs: Date.now() },
    limits,
  )
  if (!entered.ok) return `${entered.reason}: ${entered.detail}`
  const isOver = Buffer.byteLength(key) + entered.message.body.length > limits.maxBytes
  return isOver ? `body_too_large: with its key, the message is over ${limits.maxBytes} bytes` : undefined
}

function jsonFault(text: string): string {
  try {
    JSON.parse(text)
    return ''
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
