import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createCatalog } from '../../../../src/catalog/catalog.ts'
import { readConfig } from '../../../../src/config/read.ts'
import { previewCalls } from '../../../../src/roles/preview-calls.ts'
import { adminRequest } from '../../../support/admin-request.ts'
import { quietLog } from '../../../support/emitted-lines.ts'

const read = readConfig({ env: {} })
if (!read.ok) throw new Error(read.message)
const { config } = read
const desk = {
  tell: async (): Promise<never> => {
    throw new Error('nothing is told of these previews')
  },
}

function opened() {
  return previewCalls({ config, log: quietLog, desk, catalog: () => createCatalog([], [], '') })
}

/** Returns a request of less than 64 KB. Its rule makes 600 KB of each message. */
function expensive(messages: number): { mappings: object[]; messages: object[] } {
  let text: object = { '@template': '{{properties.t}}'.repeat(30) }
  for (let times = 0; times < 3; times++)
    text = { '@replace': { pattern: 'a', replacement: 'aaaaaaaaaa', value: text } }
  return {
    mappings: [{ body: { text } }],
    messages: Array.from({ length: messages }, (_, at) => ({
      type: 'track',
      event: 'E',
      userId: 'u',
      messageId: `m${at}`,
      properties: { t: 'a'.repeat(20) },
    })),
  }
}

/** Counts the turns of the event loop until a call has ended. */
async function turnsUntil<T>(call: Promise<T>): Promise<{ turns: number; result: T }> {
  const ended = call.then((result) => ({ result }))
  for (let turns = 1; ; turns++) {
    const now = await Promise.race([ended, nextTurn()])
    if (now !== undefined) return { turns, ...now }
  }
}

test('while an expensive rule is tried on many messages, other calls have their turns', async () => {
  const { turns, result } = await turnsUntil(opened().preview(adminRequest({ body: expensive(12) })))
  expect(result.status).toBe(200)
  // Without pauses, it is one turn.
  expect(turns).toBeGreaterThan(3)
})

test('a preview whose results would be larger than an answer may be ends before it has made them', async () => {
  const { result } = await turnsUntil(opened().preview(adminRequest({ body: expensive(100) })))
  expect(result).toMatchObject({
    status: 422,
    body: {
      type: '/problems/answer-too-large',
      detail: expect.stringMatching(/^The results of \d\d messages are too large: try fewer messages\.$/),
    },
  })
})

test('more than two previews of one token at once are refused, and those of others are not', async () => {
  const calls = opened()
  const of = (name: string) => {
    const { token } = adminRequest()
    return calls.preview(adminRequest({ body: expensive(6), token: { ...token, name, family: name } }))
  }
  const answers = await Promise.all([of('ann'), of('ann'), of('ann'), of('bob')])
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 429, 200])
})
