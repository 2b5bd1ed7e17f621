import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { beforeAll, expect, test } from 'vitest'
import { BundleFolder } from '../../../../src/admin/console/bundle.ts'
import { serveAdmin } from '../../../support/serve-admin.ts'

const script = 'console.log(1)'
const page = '<!doctype html><script src="./main.a1b2c3d4.js"></script><link rel="icon" href="./icon.svg">'
let folder = ''

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-console-'))
  return () => rmSync(folder, { recursive: true, force: true })
})

function build(content = page): string {
  const made = mkdtempSync(join(folder, 'bundle-'))
  writeFileSync(join(made, 'main.a1b2c3d4.js'), script)
  writeFileSync(join(made, 'main.a1b2c3d4.js.gz'), gzipSync(script))
  writeFileSync(join(made, 'icon.svg'), '<svg/>')
  mkdirSync(join(made, 'fonts'))
  writeFileSync(join(made, 'fonts/one-a1b2c3d4.woff2'), 'x')
  writeFileSync(join(made, 'index.html'), content)
  writeFileSync(join(made, 'secret.txt'), 'not of the bundle')
  const names = ['main.a1b2c3d4.js', 'icon.svg', 'fonts/one-a1b2c3d4.woff2', 'index.html']
  writeFileSync(
    join(made, 'manifest.json'),
    JSON.stringify(Object.fromEntries(names.map((name) => [name, {}]))),
  )
  return made
}

async function serve(
  publicUrl?: string,
  bundle?: BundleFolder,
): Promise<(path: string, headers?: object) => Promise<Response>> {
  const prefix = publicUrl === undefined ? '' : new URL(publicUrl).pathname
  const files = bundle ?? new BundleFolder(build(), prefix)
  const port = await serveAdmin({
    browsers: { publicUrl, trustedProxies: [] },
    console: { bundle: () => files.current() ?? 'Run npm run build:console <now>', onViolation: () => {} },
  })
  return (path, headers = {}) =>
    fetch(`http://127.0.0.1:${port}${path}`, { redirect: 'manual', headers: { ...headers } })
}

test('a file has its type, is compressed for who takes it, and is kept if its name has a hash', async () => {
  const get = await serve()
  const main = await get('/console/main.a1b2c3d4.js', { 'accept-encoding': 'br, gzip' })
  expect(await main.text()).toBe(script)
  expect(Object.fromEntries(main.headers)).toMatchObject({
    'content-type': 'text/javascript; charset=utf-8',
    'content-encoding': 'gzip',
    'cache-control': 'public, max-age=31536000, immutable',
    vary: 'accept-encoding',
    'x-content-type-options': 'nosniff',
  })
  for (const accepted of ['identity', 'gzip;q=0']) {
    const plain = await get('/console/main.a1b2c3d4.js', { 'accept-encoding': accepted })
    expect([plain.headers.get('content-encoding'), await plain.text()]).toEqual([null, script])
  }
  const font = await get('/console/fonts/one-a1b2c3d4.woff2')
  expect(font.headers.get('content-type')).toBe('font/woff2')
  const icon = await get('/console/icon.svg')
  expect([icon.headers.get('content-type'), icon.headers.get('cache-control')]).toEqual([
    'image/svg+xml',
    'no-cache',
  ])
})

test.each([undefined, 'https://ops.example.com/sluice'])(
  'each path of a page has the page, which finds its files from there (%s)',
  async (publicUrl) => {
    const get = await serve(publicUrl)
    const prefix = publicUrl === undefined ? '' : '/sluice'
    for (const path of [
      '/console/',
      '/console/destinations/crm.js',
      '/console/messages/a%2Fb?x=1',
      '/console/index.html',
    ]) {
      const response = await get(`${prefix}${path}`)
      expect([path, response.status, response.headers.get('cache-control')]).toEqual([path, 200, 'no-cache'])
      const text = await response.text()
      expect(text).toContain(`src="${prefix}/console/main.a1b2c3d4.js"`)
      expect(text).toContain(`href="${prefix}/console/icon.svg"`)
    }
    for (const path of ['/', '/console'])
      expect((await get(`${prefix}${path}`)).headers.get('location')).toBe(`${prefix}/console/`)
  },
)

test('what is not of the bundle is not served, wherever it is', async () => {
  const get = await serve()
  // A browser with an earlier page asks for a file that a new build has no more.
  expect((await get('/console/main.00000000.js')).status).toBe(404)
  for (const path of ['secret.txt', '..%2F..%2Fetc%2Fpasswd', '%2e%2e/%2e%2e/etc/passwd', 'manifest.json']) {
    const text = await (await get(`/console/${path}`)).text()
    expect(text).not.toMatch(/not of the bundle|root:|\{\}/)
  }
})

test('a bundle that was built anew is served, and without one, a page says what to run', async () => {
  const built = build()
  const bundle = new BundleFolder(built, '')
  const get = await serve(undefined, bundle)
  expect(await (await get('/console/')).text()).toContain('main.')
  writeFileSync(join(built, 'index.html'), 'anew')
  utimesSync(join(built, 'manifest.json'), new Date(), new Date(Date.now() + 5_000))
  expect(await (await get('/console/')).text()).toBe('anew')
  const empty = await serve(undefined, new BundleFolder(join(folder, 'nowhere'), ''))
  const response = await empty('/console/')
  expect([response.status, await response.text()]).toEqual([
    503,
    expect.stringContaining('npm run build:console &lt;now>'),
  ])
  expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
})

test.each([undefined, 'https://ops.example.com/sluice'])(
  'a page that says why there is no console loads itself again by a file that its policy allows (%s)',
  async (publicUrl) => {
    const prefix = publicUrl === undefined ? '' : '/sluice'
    const get = await serve(publicUrl, new BundleFolder(join(folder, 'nowhere'), prefix))
    const notice = await (await get(`${prefix}/console/`)).text()
    const [, address = ''] = /<script src="([^"]+)"><\/script>/.exec(notice) ?? []
    const response = await get(address)
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      'text/javascript; charset=utf-8',
    ])
    expect(await response.text()).toContain('location.reload()')
  },
)
