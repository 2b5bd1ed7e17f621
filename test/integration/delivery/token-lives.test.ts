import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  answer,
  type ReceivedRequest,
  type Receiver,
  type Script,
  startReceiver,
} from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { type Deployment, type DestinationEntry, deploy } from './deployment.ts'

/**
 * Tokens of token endpoints that differ, while messages flow through a worker: how the client names itself, how long
 * tokens live, and what endpoints say about them. Each destination has a source, a path and a token endpoint of its own.
 */

const json = { 'Content-Type': 'application/json' }
const client = { id: 'urn:app/1 ü', secret: 'a b+c/d=%41&"é:\\' }

let tokens: Receiver
let hooks: Receiver
let sluice: Deployment
let catalog: DestinationEntry[]
/** When each token ends, in epoch milliseconds. */
const ends = new Map<string, number>()
/** The ids of the messages that each path has accepted. */
const accepted = new Map<string, string[]>()
let given = 0
/** While it is true, the path `/storming` refuses all tokens. */
let isStorming = false

/** Gives a token that lives so long, in milliseconds. `said`: what the answer says about it. */
function giving(lifeMs: number, said: object, tokenOf = (nth: number): string => `token-${nth}`): Script {
  return (_request, response) => {
    const token = tokenOf(++given)
    ends.set(token, Date.now() + lifeMs)
    response.writeHead(200, json).end(JSON.stringify({ access_token: token, token_type: 'Bearer', ...said }))
  }
}

function jwtOf(lifeS: number): (nth: number) => string {
  return (nth) => {
    const claims = { exp: Math.floor(Date.now() / 1_000) + lifeS, jti: nth }
    return ['{}', JSON.stringify(claims), 'signature']
      .map((part) => Buffer.from(part).toString('base64url'))
      .join('.')
  }
}

function decoded(text: string): string {
  return decodeURIComponent(text.replaceAll('+', '%20'))
}

/** Decodes id and secret of the client as RFC 6749 wants it, or takes them as they are. */
function asking(isDecoded: boolean): Script {
  return (request, response, nth) => {
    const { authorization = '' } = request.headers
    const form = new URLSearchParams(request.body.toString())
    const [id = '', ...rest] = Buffer.from(authorization.slice('Basic '.length), 'base64')
      .toString()
      .split(':')
    const named = isDecoded ? [decoded(id), decoded(rest.join(':'))] : [id, rest.join(':')]
    const posted = [form.get('client_id'), form.get('client_secret')]
    const isKnown = [named, posted].some((one) => one[0] === client.id && one[1] === client.secret)
    if (isKnown) giving(3_600_000, { expires_in: 3_600 })(request, response, nth)
    else answer(401, json, '{"error":"invalid_client"}')(request, response, nth)
  }
}

const accept: Script = (request, response, nth) => {
  const token = String(request.headers.authorization).replace('Bearer ', '')
  if (Date.now() >= (ends.get(token) ?? 0)) {
    answer(401)(request, response, nth)
    return
  }
  accepted.set(request.path, [...(accepted.get(request.path) ?? []), idOf(request)])
  answer(204)(request, response, nth)
}

beforeAll(async () => {
  tokens = await startReceiver({
    '/decoding': asking(true),
    '/literal': asking(false),
    '/unsaid': giving(3_600_000, {}),
    '/jwt': giving(8_000, {}, jwtOf(8)),
    '/brief': giving(6_000, { expires_in: 6 }),
    '/shorter': giving(8_000, { expires_in: 3_600 }),
    '/forbidding': giving(3_600_000, { expires_in: 3_600 }),
    '/storming': giving(3_600_000, { expires_in: 3_600 }),
  })
  hooks = await startReceiver((request, response, nth) => {
    // The first token is refused, and the second one lacks a right.
    if (request.path === '/forbidding') answer(nth === 1 ? 401 : 403)(request, response, nth)
    else if (request.path === '/storming' && isStorming) answer(401)(request, response, nth)
    else accept(request, response, nth)
  })
  catalog = ['decoding', 'literal', 'unsaid', 'jwt', 'brief', 'shorter', 'forbidding', 'storming'].map((id) =>
    to(id),
  )
  sluice = await deploy({ destinations: catalog })
})

afterAll(async () => {
  await sluice?.stop()
  await Promise.all([tokens?.stop(), hooks?.stop()])
})

function to(id: string, more: object = {}): DestinationEntry {
  const login = {
    kind: 'oauth2',
    tokenUrl: `${tokens.origin}/${id}`,
    clientId: client.id,
    clientSecret: client.secret,
    ...more,
  }
  return { id, sources: [id], hooks: [{ id: 'main', url: `${hooks.origin}/${id}`, login }] }
}

function idOf({ body }: ReceivedRequest): string {
  return String(JSON.parse(body.toString()).messageId)
}

async function send(source: string, ids: readonly string[]): Promise<void> {
  await sluice.send(
    source,
    ids.map((messageId) => ({
      key: messageId,
      value: { type: 'track', userId: 'u', event: 'Ping', messageId },
    })),
  )
}

/** Sends messages for so many milliseconds, and waits until all are accepted. Returns how many there were. */
async function flow(id: string, forMs: number): Promise<number> {
  const untilMs = performance.now() + forMs
  const ids: string[] = []
  await until(
    'all are accepted',
    async () => {
      if (performance.now() < untilMs) {
        const next = Array.from({ length: 10 }, (_, at) => `${id}-${ids.length + at}`)
        ids.push(...next)
        await send(id, next)
        return false
      }
      return accepted.get(`/${id}`)?.length === ids.length
    },
    { timeoutMs: forMs + 60_000 },
  )
  expect(accepted.get(`/${id}`)?.toSorted()).toEqual(ids.toSorted())
  return ids.length
}

test('a client with special characters is known to a token endpoint that decodes them', async () => {
  await send('decoding', ['decoding-0'])
  await until('it is accepted', () => accepted.get('/decoding')?.length === 1)
  expect(tokens.requestsTo('/decoding')).toHaveLength(1)
})

test('for one that does not decode them, messages wait until the login says clientAuth: post', async () => {
  await send('literal', ['literal-0'])
  await until('it waits', () => sluice.worker.log.some(({ destination }) => destination === 'literal'))
  expect(hooks.requestsTo('/literal')).toEqual([])
  sluice.recatalog(catalog.map((one) => (one.id === 'literal' ? to('literal', { clientAuth: 'post' }) : one)))
  await until('it is accepted', () => accepted.get('/literal')?.length === 1)
  expect(hooks.requestsTo('/literal')[0]?.headers['x-sluice-attempt']).toBe('1')
})

describe('while messages flow,', () => {
  /** The numbers of messages. */
  let counts: Record<'unsaid' | 'brief' | 'jwt' | 'shorter', number>
  let tookS = 0

  beforeAll(async () => {
    const startedMs = performance.now()
    const [unsaid, brief, jwt, shorter] = await Promise.all([
      flow('unsaid', 2_000),
      flow('brief', 12_000),
      flow('jwt', 12_000),
      flow('shorter', 12_000),
    ])
    counts = { unsaid, brief, jwt, shorter }
    tookS = (performance.now() - startedMs) / 1_000
  })

  test('a token without a lifetime is not asked for again and again', () => {
    expect(hooks.requestsTo('/unsaid')).toHaveLength(counts.unsaid)
    expect(tokens.requestsTo('/unsaid')).toHaveLength(1)
  })

  test.each(['brief', 'jwt'] as const)('a token is replaced before it ends (%s)', (id) => {
    expect(tokens.requestsTo(`/${id}`).length).toBeGreaterThan(1)
    expect(tokens.requestsTo(`/${id}`).length).toBeLessThan(tookS)
    // On a busy machine, a request may take longer than a token has left.
    expect(hooks.requestsTo(`/${id}`).length).toBeLessThanOrEqual(1.2 * counts[id])
  })

  test('a token that ends earlier than it says costs one request for each message that had it', () => {
    const requests = hooks.requestsTo('/shorter')
    const pairs = requests.map((request) => `${idOf(request)} ${String(request.headers.authorization)}`)
    expect(new Set(pairs).size).toBe(pairs.length)
    expect(pairs.length).toBeGreaterThan(counts.shorter)
    expect(new Set(requests.map(({ headers }) => headers['x-sluice-attempt']))).toEqual(new Set(['1']))
  })
})

test('a second token that lacks a right is a refusal, and asks for no third one', async () => {
  await send('forbidding', ['forbidding-0'])
  const letters = await until('it is a dead letter', async () => {
    const all = await sluice.read('dead-letters')
    const own = all.filter(({ headers }) => headers['destination-id'] === 'forbidding')
    return own.length > 0 ? own : undefined
  })
  expect(letters.map(({ headers }) => [headers['message-id'], headers['reason']])).toEqual([
    ['forbidding-0', 'failed_for_good'],
  ])
  expect(hooks.requestsTo('/forbidding')).toHaveLength(2)
  expect(tokens.requestsTo('/forbidding')).toHaveLength(2)
})

test('an endpoint that refuses all tokens for a while gets each message twice at most, and costs few tokens', async () => {
  await flow('storming', 100)
  const [before, startedMs] = [tokens.requestsTo('/storming').length, performance.now()]
  isStorming = true
  const ids = Array.from({ length: 60 }, (_, at) => `stormy-${at}`)
  await send('storming', ids)
  const lost = await until('all are dead letters', async () => {
    const all = await sluice.read('dead-letters')
    const these = all.map(({ headers }) => String(headers['message-id'])).filter((id) => ids.includes(id))
    return these.length >= ids.length ? these : undefined
  })
  expect(lost.toSorted()).toEqual(ids.toSorted())
  const pairs = hooks
    .requestsTo('/storming')
    .filter((request) => ids.includes(idOf(request)))
    .map((request) => `${idOf(request)} ${String(request.headers.authorization)}`)
  expect(new Set(pairs).size).toBe(pairs.length)
  expect(pairs.length).toBeLessThanOrEqual(2 * ids.length)
  const most = 3 + Math.ceil((performance.now() - startedMs) / 10_000)
  expect(tokens.requestsTo('/storming').length - before).toBeLessThanOrEqual(most)
  isStorming = false
  await send('storming', ['calm'])
  await until('it is accepted', () => accepted.get('/storming')?.includes('calm'))
})
