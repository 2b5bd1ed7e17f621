import type { Config } from '../../config/schema.ts'
import { enter } from '../../message/enter.ts'
import { parseJson } from '../../message/json/json.ts'
import { sourceIdOf } from '../../message/record-headers.ts'
import type { WholeRecord } from '../../message/records.ts'
import { magicByte } from '../../schema-registry/frame.ts'
import { openDecoder } from '../start/schema-registry.ts'
import { type BodyCondition, meets } from './body-condition.ts'
import { decodeWithin } from './payload.ts'

/** What is looked for in the records of `events`. */
export type Wanted = {
  /** All of them must be met. */
  readonly conditions: readonly BodyCondition[]
  /** A text that the message must have somewhere. */
  readonly text: string | undefined
  /** Returns true if messages of a source are looked at. Records without one have the id ''. */
  readonly isSource: (id: string) => boolean
}

/** A record that says what is looked for. */
export type FoundEvent = {
  readonly messageId: string
  readonly type: string
  readonly source: string
  readonly body: string
}

export type Judge = {
  /** Returns what a record says if it meets the conditions. */
  of(partition: number, record: WholeRecord): Promise<FoundEvent | undefined>
  stop(): void
}

/** How long a schema of a registry is waited for, in milliseconds. */
const decodedWithinMs = 10_000

/** Opens what decides whether a record of `events` says what is looked for. */
export async function openJudge(
  config: Config,
  topic: string,
  { conditions, text, isSource }: Wanted,
): Promise<Judge> {
  const decoder = await openDecoder(config, silent)
  const wanted = text === undefined ? undefined : Buffer.from(text)

  async function plainOf(value: Buffer): Promise<Buffer | undefined> {
    if (value[0] !== magicByte) return value
    const decoded = await decodeWithin(decoder, value, decodedWithinMs)
    return decoded?.ok === true ? decoded.value : undefined
  }

  return {
    async of(partition, { value, headers, offset, timestampMs }) {
      const source = sourceIdOf(headers) ?? ''
      if (value === null || !isSource(source)) return undefined
      const body = await plainOf(value)
      if (body === undefined || (wanted !== undefined && !body.includes(wanted))) return undefined
      const parsed = parseJson(body.toString())
      if (!parsed.ok || !conditions.every((condition) => meets(parsed.value, condition))) return undefined
      const entered = enter(body, { topic, partition, offset, timestampMs }, config.message)
      // A message that Sluice refuses is a dead letter, which somebody may look for too.
      const { messageId, type } = entered.ok ? entered.message : namesIn(parsed.value)
      return { messageId, type, source, body: body.toString() }
    },
    stop: () => decoder.stop(),
  }
}

function namesIn(message: unknown): { messageId: string; type: string } {
  const { messageId, type }: { messageId?: unknown; type?: unknown } = Object(message)
  return { messageId: textOf(messageId), type: textOf(type) }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

const silent = { info() {}, warn() {}, error() {} }
