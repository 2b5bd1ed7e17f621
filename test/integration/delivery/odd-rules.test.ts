import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ReceivedRequest, type Receiver, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { type Deployment, type DestinationEntry, deploy } from './deployment.ts'

/**
 * Conditions, mappings and batches on messages that others are known to lose, or to send in a broken form. On a real Kafka,
 * to a real server. Each destination has a source and a path of its own.
 */

const maxBytes = 4_096

let server: Receiver
let sluice: Deployment

/** Makes a body that is about nine times as long as the text in the message. */
const ninefold = {
  body: {
    id: { '@path': '$.messageId' },
    text: { '@template': '{{properties.text}}'.repeat(9) },
  },
}

beforeAll(async () => {
  server = await startReceiver()
  sluice = await deploy({
    destinations: [
      to('numbers', { filter: { condition: 'properties.price > 400 && properties.price != 451' } }),
      to('absent', { filter: { condition: 'properties.plan.name == "pro" || event == "Always"' } }),
      to('texts', {
        mappings: [
          {
            path: '/of/{{properties.text}}',
            headers: { 'X-Text': { '@template': 'of {{messageId}}' } },
            body: {
              text: { '@template': '{"said": "{{properties.text}}"}' },
              nested: { '@template': '{{properties.list}}' },
            },
          },
        ],
      }),
      to('grown', { batch: { maxBytes, maxWait: '300ms' }, mappings: [ninefold] }),
      to('lonely', { batch: { maxMessages: 1_000, maxWait: '500ms' } }),
    ],
  })
})

afterAll(async () => {
  await sluice?.stop()
  await server?.stop()
})

function to(id: string, rest: object): DestinationEntry {
  return { id, sources: [id], hooks: [{ url: `${server.origin}/${id}` }], ...rest }
}

type Sent = { readonly id: string; readonly event?: string; readonly properties?: object }

async function send(source: string, messages: readonly Sent[]): Promise<void> {
  await sluice.send(
    source,
    messages.map(({ id, event = 'Ping', properties = {} }) => ({
      key: 'user',
      value: { type: 'track', userId: 'user', event, messageId: id, properties },
    })),
  )
}

function cameTo(prefix: string): ReceivedRequest[] {
  return server.requests.filter(({ path }) => path.startsWith(`/${prefix}`))
}

function read({ body }: ReceivedRequest) {
  return JSON.parse(body.toString())
}

describe('a condition', () => {
  test('compares numbers by their value, whole or not, and texts are no numbers', async () => {
    const prices = [450, 450.5, 400, 400.0000001, 451, 1e21, '450', null, [450], -450]
    await send(
      'numbers',
      prices.map((price, at) => ({ id: `price-${at}`, properties: { price } })),
    )
    const passing = [400.0000001, 450, 450.5, 1e21]
    await until('all that pass are there', () => cameTo('numbers').length >= passing.length)
    const came = cameTo('numbers').map((request): number => read(request).properties.price)
    expect(came.toSorted((one, other) => one - other)).toEqual(passing)
  })

  test('on a field that a message lacks fails neither the message nor those after it', async () => {
    const pro = { plan: { name: 'pro' } }
    await send('absent', [
      { id: 'a' },
      { id: 'b', properties: { plan: 'pro' } },
      { id: 'c', properties: { plan: null } },
      { id: 'd', event: 'Always' },
      { id: 'e', properties: pro },
    ])
    await until('both that pass are there', () => cameTo('absent').length >= 2)
    const came = cameTo('absent').map((request): string => read(request).messageId)
    expect(came.toSorted()).toEqual(['d', 'e'])
    const counted = await sluice.worker.metric('sluice_not_routed_total', {
      reason: 'filtered_by_missing_field',
    })
    expect(counted).toBeGreaterThanOrEqual(3)
  })
})

describe('a template', () => {
  const texts = [
    'say "hi"',
    'two\nlines\r\n',
    'back\\slash',
    '{{userId}} ${x} $& $1',
    '😀 \u2028 \u0000',
    '<b>&amp;</b>',
    '", "isAdmin": true, "x": "',
    '?a=1#b%2fc;d',
  ]
  test.each(texts.map((text, at): [string, number] => [text, at]))(
    'with %j keeps the value as it is, in the body and in the path',
    async (text, at) => {
      await send('texts', [{ id: `text-${at}`, properties: { text, list: [text, { text }] } }])
      const request = await until('it came', () =>
        cameTo('texts').find(({ headers }) => headers['x-text'] === `of text-${at}`),
      )
      const body = read(request)
      expect(Object.keys(body)).toEqual(['text', 'nested'])
      expect(body.text).toBe(`{"said": "${text}"}`)
      expect(JSON.parse(body.nested)).toEqual([text, { text }])
      expect(request.path).toBe(`/texts/of/${encodeURIComponent(text)}`)
    },
  )
})

describe('a batch', () => {
  test('whose messages grow by their mapping is no larger than the destination takes', async () => {
    const ids = Array.from({ length: 60 }, (_, at) => `grown-${at}`)
    await send(
      'grown',
      ids.map((id) => ({ id, properties: { text: 'x'.repeat(40) } })),
    )
    const all = () => cameTo('grown').flatMap((request): { id: string }[] => read(request))
    await until('all came', () => all().length >= ids.length)
    expect(all().map(({ id }) => id)).toEqual(ids)
    expect(Math.max(...cameTo('grown').map(({ body }) => body.length))).toBeLessThanOrEqual(maxBytes)
    expect(cameTo('grown').length).toBeLessThan(ids.length / 2)
  })

  test('that never fills is sent when its first message has waited for maxWait', async () => {
    const startedMs = performance.now()
    await send('lonely', [{ id: 'lonely-0' }])
    const request = await until('it came', () => cameTo('lonely')[0])
    expect(performance.now() - startedMs).toBeLessThan(10_000)
    expect(read(request)).toHaveLength(1)
  })
})
