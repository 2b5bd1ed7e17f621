import type { Config } from '../../config/schema.ts'
import { timeOf } from '../../delivery-log/lines.ts'
import { openDecoder } from '../start/schema-registry.ts'
import { readPayload } from './payload.ts'
import type { SourceEvent } from './source-events.ts'

/** How long the schema registry may take, in milliseconds. */
const decodedWithinMs = 5_000

/** Returns records of `events` as an answer has them, as their producers wrote them. */
export async function eventData(
  config: Config,
  topic: string,
  events: readonly SourceEvent[],
): Promise<readonly object[]> {
  let registryTrouble = ''
  const decoder = await openDecoder(config, silent, { onDown: (_isDown, why) => (registryTrouble = why) })
  try {
    return await Promise.all(
      events.map(async ({ partition, offset, timestampMs, value }) => {
        const { payload = null, note = null } = await readPayload(value, {
          messageId: undefined,
          isFramed: true,
          decoder,
          withinMs: decodedWithinMs,
          registryTrouble: () => registryTrouble,
        })
        return { origin: { topic, partition, offset }, at: timeOf(timestampMs), body: payload, note }
      }),
    )
  } finally {
    decoder.stop()
  }
}

/** What can't be read is said in the field `note` of the answer. */
const silent = { info() {}, warn() {}, error() {} }
