import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startChromium } from '../support/chromium.ts'
import { type ConsolePage, openConsolePage, untilShown } from '../support/console-page.ts'
import { type ConsoleScene, openConsoleScene, refusedPart } from '../support/console-scene.ts'
import { answer, type Receiver, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'

// Strangers write what they can into what the console shows, and attack the sessions of its people, in Chromium.

const hostile = [
  '<img src=x onerror=alert(1)>',
  '<script>alert(2)</script>',
  '"><svg onload=alert(3)>',
  '\'"`;--${alert(4)}{{alert(5)}}',
  '<style>body{display:none}</style>',
  'javascript:alert(6)',
  '</title><base href=https://evil.example/>',
].join(' ')

let sluice: ConsoleScene
let browser: Browser
let shown: ConsolePage
let page: Page
let receiver: Receiver
/** A page of another site. Its host is 127.0.0.1 or localhost, so it is of the same site, or of another. */
let evil: Receiver
/** It has nothing of the user's id, which would be masked. */
const hostileAnswer = '<script>alert(9)</script><img src=y onerror=alert(10)>'

let evilPage = ''

beforeAll(async () => {
  ;[sluice, browser, receiver, evil] = await Promise.all([
    openConsoleScene(),
    startChromium(),
    startReceiver(answer(400, { 'content-type': 'text/html', 'x-hostile': 'x' }, hostileAnswer)),
    startReceiver((_request, response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end(evilPage),
    ),
  ])
  await sluice.call('PUT', '/v1/sources/evil', {
    id: 'evil',
    name: hostile.slice(0, 100),
    writeKeys: ['evil-key'],
  })
  for (const [id, tenant] of [
    ['acme.crm', 'acme'],
    ['globex.crm', 'globex'],
  ] as const)
    await sluice.call('PUT', `/v1/destinations/${id}`, {
      id,
      name: id === 'acme.crm' ? hostile.slice(0, 200) : 'Secret Globex',
      sources: ['app', 'evil'],
      labels: { tenant },
      filter: { events: [hostile.slice(0, 100), 'Order Completed'] },
      hooks: [
        {
          url: `${receiver.origin}/${tenant}?q=${encodeURIComponent(hostile)}`,
          headers: { 'X-A': '<img src=x onerror=alert(8)>' },
        },
      ],
    })
  shown = await openConsolePage(browser)
  page = shown.page
  await page.goto(await sluice.link())
  await untilShown(page, 'Now')
})

afterAll(async () => {
  await browser?.close()
  await sluice?.close()
  await receiver?.stop()
  await evil?.stop()
})

const consoleUrl = (path: string): string => `${sluice.origin}/console/${path}`

describe('strangers write hostile texts', () => {
  test('which all pages show as texts', async () => {
    const messageId = `${hostile.slice(0, 80)}-1`
    await sluice.track({
      messageId,
      userId: hostile,
      event: 'Order Completed',
      properties: { [hostile]: hostile },
    })
    await until('both have it', () => receiver.requests.length >= 2)
    await sluice.call('POST', '/v1/tokens', { name: 'reader', right: 'read', scope: 'all', expiresAt: null })
    const query = encodeURIComponent(messageId)
    for (const [path, title] of [
      ['now', 'Now'],
      ['destinations', 'Destinations'],
      ['destination?id=acme.crm', /<img/],
      ['destination?id=acme.crm&view=attempts', /<img/],
      ['destination?id=acme.crm&view=access', /<img/],
      ['destination?id=acme.crm&view=settings', /<img/],
      ['destination?id=acme.crm&view=history', /<img/],
      [`message?id=${query}`, /^Message/],
      [`find?q=${query}`, 'Find'],
      [`find?user=${encodeURIComponent(hostile)}`, 'Find'],
      [`find?q=${encodeURIComponent('javascript:alert(7)')}`, 'Find'],
      [`find?content=${query}`, 'Find'],
      [`destinations?search=${query}&label=${query}&state=${query}&cursor=${query}`, 'Destinations'],
      [`destination?id=${query}`, /<img/],
      [`replay?id=${query}`, /^Replay/],
      [`source?id=${query}`, /^Source/],
      ['source?id=evil', /^Source/],
      ['audiences', 'Audiences'],
      ['sources', 'Sources'],
      ['dead-letters', 'Dead letters'],
      [`dead-letters?destination=${query}&hours=${query}`, 'Dead letters'],
      ['history', 'History of the catalog'],
      ['audit', 'Audit'],
      ['tokens', 'Tokens'],
      ['sessions', 'Sessions'],
      [`sessions?cursor=${query}`, 'Sessions'],
    ] as const) {
      await page.goto(consoleUrl(path))
      await untilShown(page, title)
      expect([
        path,
        await page.locator('main :is(img, script, style, svg[onload], base, iframe)').count(),
      ]).toEqual([path, 0])
      const leads: string[] = await page.evaluate(
        "[...document.querySelectorAll('a')].map(({ protocol }) => protocol)",
      )
      expect([path, new Set(leads)]).toEqual([path, new Set(['http:'])])
      expect([path, await shown.axeFaults()]).toEqual([path, []])
      expect([path, await shown.overflow()]).toEqual([path, 0])
    }
    await until('the message is in the log', async () => {
      await page.goto(consoleUrl(`message?id=${query}`))
      await untilShown(page, /^Message/)
      return (await page.locator('.timeline pre').count()) > 0
    })
    expect(await page.locator('.timeline pre').first().textContent()).toContain('<script>alert(9)</script>')
    expect(shown.complaints).toEqual([])
  })
})

/** Lets a page of another origin run a script, in the browser of somebody who is signed in. */
async function visit(host: string, script: string): Promise<Page> {
  evilPage = `<!doctype html><title>Evil</title><body><script type="module">${script}</script>`
  const visited = await page.context().newPage()
  await visited.goto(`http://${host}:${evil.port}/`)
  return visited
}

describe.each(['127.0.0.1', 'localhost'])('a page at another port of %s', (host) => {
  test('can not change or read anything with the session of who opens it', async () => {
    const target = JSON.stringify(sluice.origin)
    const visited = await visit(
      host,
      `
      const results = []
      const attempt = async (path, options) => {
        try {
          const response = await fetch(${target} + path, { credentials: 'include', ...options })
          results.push(response.type === 'opaque' ? 'opaque' : response.status + ' ' + (await response.text()).slice(0, 50))
        } catch (error) { results.push('refused') }
      }
      await attempt('/v1/destinations')
      await attempt('/v1/session')
      await attempt('/v1/live')
      await attempt('/v1/session', { method: 'DELETE' })
      await attempt('/v1/destinations/acme.crm/drop', { method: 'POST', mode: 'no-cors', body: '{"waiting":true}', headers: { 'content-type': 'text/plain' } })
      await attempt('/v1/destinations/acme.crm/rotate', { method: 'POST', mode: 'no-cors' })
      await attempt('/v1/session', { method: 'POST', mode: 'no-cors', body: JSON.stringify({ token: 'x' }) })
      document.title = JSON.stringify(results)
    `,
    )
    await visited.waitForFunction("document.title !== 'Evil'")
    const results: string[] = JSON.parse(await visited.title())
    expect(results.filter((one) => one !== 'refused' && one !== 'opaque')).toEqual([])
    // A form needs no permission to send.
    await visited.evaluate(`(() => {
      const form = document.createElement('form')
      form.method = 'POST'
      form.action = ${target} + '/v1/destinations/acme.crm/rotate'
      document.body.append(form)
      form.submit()
    })()`)
    await visited.waitForURL(/rotate/)
    expect(await visited.textContent('body')).toMatch(/other.site|415|403|401/i)
    await visited.close()
    const { destination } = await sluice.call('GET', '/v1/destinations/acme.crm')
    expect(Object(destination)['sharedSecret']).toBeUndefined()
    await page.goto(consoleUrl('now'))
    await untilShown(page, 'Now')
  })

  test('can not show the console in a frame, and has no hold on a window with it', async () => {
    const target = JSON.stringify(consoleUrl('destination?id=acme.crm'))
    const visited = await visit(
      host,
      `
      const frame = document.createElement('iframe')
      frame.src = ${target}
      frame.onload = () => { document.title = 'Framed' }
      document.body.append(frame)
    `,
    )
    await visited.waitForFunction("document.title === 'Framed'")
    const frames = visited.frames().filter((frame) => frame !== visited.mainFrame())
    for (const frame of frames) expect(await frame.locator('#console').count()).toBe(0)
    const [popup] = await Promise.all([
      visited.context().waitForEvent('page'),
      visited.evaluate(`void (window.held = open(${target}))`),
    ])
    await untilShown(popup, /<img/)
    expect(await popup.evaluate('window.opener')).toBe(null)
    await until('it has no hold', () => visited.evaluate('window.held === null || window.held.closed'))
    await popup.close()
    await visited.close()
  })
})

test('a session that somebody has chosen before is not the one that a sign-in begins', async () => {
  const victim = await openConsolePage(browser)
  const { port } = new URL(sluice.origin)
  const name = `sluice-${port}`
  const chosen = `sluice_session_${'x'.repeat(43)}`
  await victim.page.context().addCookies([{ name, value: chosen, domain: '127.0.0.1', path: '/' }])
  await victim.page.goto(consoleUrl('now'))
  await victim.page.getByLabel('Token').fill(sluice.token)
  await victim.page.getByRole('button', { name: 'Sign in' }).click()
  await untilShown(victim.page, 'Now')
  const cookies = await victim.page.context().cookies()
  expect(cookies.map((one) => one.name)).toEqual([name])
  expect(cookies[0]).toMatchObject({ httpOnly: true, sameSite: 'Strict' })
  expect(cookies[0]?.value).not.toBe(chosen)
  expect(await victim.page.evaluate('document.cookie')).toBe('')
  const asked = await fetch(`${sluice.origin}/v1/session`, { headers: { cookie: `${name}=${chosen}` } })
  expect(asked.status).toBe(401)
  // Neither the token nor the secret of the session is in what the browser keeps for pages.
  const kept: string = await victim.page.evaluate(
    'JSON.stringify([{ ...localStorage }, { ...sessionStorage }])',
  )
  expect(kept).not.toContain('sluice_')
  await victim.close()
})

describe('a customer with a link', () => {
  test('gets nothing of others by addresses that are made by hand, and a link that is changed is none', async () => {
    const made = await sluice.call('POST', '/v1/links', {
      name: 'acme',
      label: 'tenant=acme',
      rights: ['see', 'replay', 'test', 'edit_url', 'rotate'],
    })
    const link = new URL(String(made['link']), sluice.origin).href
    const customer = await openConsolePage(browser)
    const { page: theirs } = customer
    // A part of a link, a longer one, and one that is said to be a code are none.
    for (const wrong of [link.slice(0, -2), `${link}x`, link.replace('#link=', '#code=')]) {
      await theirs.goto('about:blank')
      await theirs.goto(wrong)
      await theirs.getByRole('alert').waitFor()
    }
    await theirs.goto('about:blank')
    await theirs.goto(`${link}&label=tenant=globex&rights=admin`)
    await untilShown(theirs, 'Now')
    for (const path of [
      'now',
      'destinations',
      'destinations?label=tenant=globex',
      'destinations?search=globex',
      'destination?id=globex.crm',
      'destination?id=globex.crm&view=settings',
      'destination?id=globex.crm&view=access',
      'destination?id=acme.crm&view=history',
      'find?q=globex.crm',
      'find?destination=globex.crm&hours=168',
      'dead-letters?destination=globex.crm',
      'replays',
      'audiences',
      'sources',
      'source?id=evil',
      'history',
      'audit',
      'tokens',
      'sessions',
      'links',
    ]) {
      await theirs.goto(consoleUrl(path))
      await untilShown(theirs, /./)
      // What they have typed themselves is there, of course.
      const text = await theirs.locator('#console').innerText()
      expect([path, text]).toEqual([path, expect.not.stringMatching(/Secret Globex|\/globex/)])
    }
    // What is foreign and what isn't there have the same answer, whatever is asked.
    const asked: [string, string][] = await theirs.evaluate(`(async () => {
      const paths = ['', '/health', '/signing-keys', '/test', '/rotate', '/retry-now', '/drop', '/resume']
      const answers = []
      for (const path of paths) {
        const method = ['', '/health', '/signing-keys'].includes(path) ? 'GET' : 'POST'
        const ask = async (id) => {
          const response = await fetch('../v1/destinations/' + id + path, {
            method, headers: { 'content-type': 'application/json' }, ...(method === 'POST' ? { body: '{}' } : {}),
          })
          return response.status + (await response.text()).replaceAll(id, 'ID')
        }
        answers.push([await ask('globex.crm'), await ask('nobody.crm')])
      }
      return answers
    })()`)
    for (const [foreign, missing] of asked) expect(foreign).toBe(missing)
    expect(customer.complaints).toEqual([])
    await theirs.context().close()
  })
})

test('no browser has refused a part of the console in all of this', async () => {
  expect((await sluice.wholeLog()).filter(({ msg }) => msg === refusedPart)).toEqual([])
})
