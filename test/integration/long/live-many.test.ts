import { afterAll, beforeAll, expect, test } from 'vitest'
import { openView, type OpenView } from '../../support/events.ts'
import { produce } from '../../support/kafka.ts'
import { blockOf, stateOf } from '../../support/log-blocks.ts'
import { openTenants, type Tenants } from '../../support/two-tenants.ts'
import { until } from '../../support/until.ts'

// Three hundred people look at once, on a real Kafka: as many as may look see the same, and no customer takes the
// places of all others.

let tenants: Tenants
let origin = ''
let sent = 0
/** The most live views, as `admin.liveViews` has it if nobody has set it. */
const most = 200

beforeAll(async () => {
  tenants = await openTenants()
  origin = `http://127.0.0.1:${tenants.admin.adminPort}`
})

afterAll(() => tenants?.close())

/** Begins sessions, each with a cookie of its own. */
async function signIn(given: object, count: number): Promise<readonly string[]> {
  const cookies: string[] = []
  for (let one = 0; one < count; one++) {
    const { headers } = await fetch(`${origin}/v1/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin },
      body: JSON.stringify(given),
    })
    cookies.push(headers.get('set-cookie')?.split(';')[0] ?? '')
  }
  return cookies
}

const openAll = (cookies: readonly string[]): Promise<OpenView[]> =>
  Promise.all(cookies.map((cookie) => openView(`${origin}/v1/live`, { headers: { cookie } })))

const withStatus = (views: readonly OpenView[], status: number) =>
  views.filter((view) => view.status === status)

/** Writes attempts for both customers until all of the views show one. */
async function untilShown(views: readonly OpenView[]): Promise<void> {
  const ids: string[] = []
  await until('all show it', async () => {
    const messageId = `message-${++sent}`
    ids.push(messageId)
    const states = ['acme.crm', 'globex.crm'].map((destination) => stateOf({ destination, messageId }))
    await produce(`${tenants.scene.prefix}attempts`, [{ key: '0', value: blockOf(states), partition: 0 }])
    return views.every(({ text }) => ids.some((id) => text.includes(`"${id}"`)))
  })
}

const countOpen = (): Promise<number> => tenants.admin.metric('sluice_admin_live_views')

test('of 300 sessions, 200 look, each at its own, and the others are told to come back', async () => {
  const { link } = Object(
    (
      await tenants.call('POST', '/v1/links', {
        body: { name: 'acme', label: 'tenant=acme', rights: ['see'] },
      })
    ).json,
  )
  const secret = /#link=(\S+)$/.exec(String(link))?.[1] ?? ''
  const customers = await openAll(await signIn({ link: secret }, 100))
  // A quarter of all are for one label, however many sessions its customers begin.
  expect([withStatus(customers, 200).length, withStatus(customers, 429).length]).toEqual([most / 4, most / 4])

  const operators = await openAll([
    ...(await signIn({ token: tenants.tokens.read }, 100)),
    ...(await signIn({ token: tenants.tokens.operate }, 100)),
  ])
  const looking = withStatus(operators, 200)
  expect([looking.length, withStatus(operators, 429).length]).toEqual([150, 50])
  expect(await countOpen()).toBe(most)

  await untilShown([...withStatus(customers, 200), ...looking])
  for (const { text } of customers) expect(text).not.toContain('globex')

  for (const view of [...customers, ...operators]) view.close()
  await until('all places are free', async () => (await countOpen()) === 0)
})
