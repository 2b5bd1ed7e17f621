import { randomUUID } from 'node:crypto'

/** The kinds of messages that `sluice trigger` sends. */
export const sampleKinds = [
  'identify',
  'track',
  'page',
  'screen',
  'group',
  'alias',
  'delete',
  'audience-enter',
  'audience-exit',
] as const
export type SampleKind = (typeof sampleKinds)[number]

type Fields = Readonly<Record<string, unknown>>

const userId = 'sample-user'
const context = { ip: '203.0.113.7', userAgent: 'sluice trigger' }

/** The fields of each kind that are its own. */
const own: Readonly<Record<SampleKind, Fields>> = {
  identify: {
    type: 'identify',
    userId,
    traits: { email: 'sample@example.com', name: 'Sam Sample', plan: 'pro' },
  },
  track: {
    type: 'track',
    userId,
    event: 'Order Completed',
    properties: {
      orderId: 'sample-order',
      total: 30,
      currency: 'EUR',
      products: [{ sku: 'A-1', quantity: 2 }],
    },
  },
  page: {
    type: 'page',
    userId,
    name: 'Pricing',
    properties: { url: 'https://example.com/pricing', path: '/pricing', title: 'Pricing' },
  },
  screen: { type: 'screen', userId, name: 'Settings', properties: { tab: 'profile' } },
  group: {
    type: 'group',
    userId,
    groupId: 'sample-company',
    traits: { name: 'Sample Ltd', employees: 12 },
  },
  alias: { type: 'alias', userId, previousId: 'sample-anonymous' },
  delete: { type: 'delete', userId },
  'audience-enter': audienceIdentify(true),
  'audience-exit': audienceIdentify(false),
}

/** Returns the Identify that tells a destination whether a user is in an audience. */
function audienceIdentify(isMember: boolean): Fields {
  const [key, space] = ['sample_audience', 'sample-space']
  return {
    type: 'identify',
    userId,
    traits: { [key]: isMember },
    context: {
      personas: {
        computation_class: 'audience',
        computation_id: 'aud_sample',
        computation_key: key,
        namespace: space,
        space_id: space,
      },
    },
  }
}

/** Returns a sample message. Each one has a `messageId` of its own. */
export function sampleOf(kind: SampleKind, nowMs: number): Fields {
  const isMade = kind.startsWith('audience') || kind === 'delete'
  const at = new Date(nowMs).toISOString()
  return {
    ...own[kind],
    messageId: `sample-${kind}-${randomUUID()}`,
    timestamp: at,
    ...(!isMade && { receivedAt: at, context }),
  }
}
