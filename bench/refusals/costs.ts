import { enter } from '../../src/message/enter.ts'
import type { Random } from '../../test/support/random.ts'
import { trackingOf } from '../../test/support/tracking.ts'
import { anyMessage, type HostileMessage, knownMessages } from './hostile-messages.ts'
import { anyRequest, type HostileRequest, knownKey, knownRequests, lengthened } from './hostile-requests.ts'
import { type Cost, findWorst, type Process } from './worst-case.ts'
import type { Client } from '../../src/gateway/calls/tracking.ts'

const origin = { topic: 'sluice.events', partition: 0, offset: 0, timestampMs: Date.UTC(2026, 0, 1) }
const seed = 41

/** Returns a function that lets a gateway without a server judge a request. */
export function judging(): Process<HostileRequest> {
  const source = { id: 'shop', name: 'shop', kind: 'events', enabled: true, serverKeys: [] } as const
  const tracking = trackingOf({
    sources: [{ ...source, writeKeys: [knownKey], maxPerSecond: undefined }],
    ackTimeoutMs: 60_000,
    bufferBytes: 2 ** 40,
  })
  let requests = 0
  return (body, { call, hasKey }) => {
    // Each request has a client of its own. Otherwise they would soon be refused without being read.
    const client: Client = { address: `client ${requests++}`, ip: '203.0.113.7' }
    void tracking.handle(call, body, hasKey ? `Bearer ${knownKey}` : undefined, client)
  }
}

/** Enters a message as a worker does. */
export const entering: Process<HostileMessage> = (value) => {
  enter(value, origin)
}

/** Returns the most expensive requests of at most 2 KB, the worst first. Kafka's part isn't measured. */
export function worstRequests(searched: number): readonly Cost<HostileRequest>[] {
  return findWorst(knownRequests().map(lengthened), anyLengthened, judging(), { seed, searched })
}

function anyLengthened(random: Random): HostileRequest {
  return lengthened(anyRequest(random))
}

/** Returns the messages of 32 KB that are the most expensive to enter, the worst first. */
export function worstMessages(searched: number): readonly Cost<HostileMessage>[] {
  return findWorst(knownMessages(), anyMessage, entering, { seed, searched })
}
