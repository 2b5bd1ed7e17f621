import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { join, resolve } from 'node:path'
import { inject } from 'vitest'
import { stringify } from 'yaml'
import { newSigningKey } from '../../src/catalog/features/signing-keys.ts'

/** What the pages take for granted: programs on the PATH, files in the folder, and Segment's Public API. */

/** Writes the programs that the pages use, as a person in this folder has them. */
export function writePrograms(folder: string): void {
  mkdirSync(join(folder, 'bin'))
  // The build that is tested has no pages beside it.
  const withPages = resolve(import.meta.dirname, '../../src/main.ts')
  const sluice = `[ "$1" = runbook ] && exec '${process.execPath}' '${withPages}' "$@"
exec '${process.execPath}' '${inject('program')}' "$@"`
  for (const [name, line] of [
    ['sluice', sluice],
    ['npx', `shift\n${sluice}`],
    ['xdg-open', 'exit 0'],
  ] as const) {
    writeFileSync(join(folder, 'bin', name), `#!/bin/sh\n${line}\n`)
    chmodSync(join(folder, 'bin', name), 0o755)
  }
  // An answer with an error fails the command.
  writeFileSync(join(folder, '.curlrc'), 'fail-with-body\nsilent\nshow-error\n')
}

export type PageFiles = {
  /** Returns the URL of an endpoint. */
  readonly url: (path: string) => string
  /** A token of the admin API. */
  readonly token: string
}

/** Writes the files that the pages name. */
export function writePageFiles(folder: string, { url, token }: PageFiles): void {
  const of = (id: string, more: object = {}): object => ({
    id,
    state: 'on',
    sources: ['shop'],
    hooks: [{ url: url(`/${id}`) }],
    ...more,
  })
  const crm = of('crm', {
    sources: ['shop', 'personas'],
    sharedSecret: 'change-me',
    autoPause: '120h',
    signing: { standardWebhooks: true, ed25519: [signingKey] },
    hooks: [{ id: 'primary', url: url('/crm') }],
  })
  const acme = of('acme-shop', { labels: { tenant: 'acme' } })
  const catalog = {
    sources: [
      { id: 'app', writeKeys: ['app-write-key'] },
      { id: 'shop', writeKeys: ['shop-write-key'], serverKeys: ['shop-server-key-1'] },
      { id: 'personas', kind: 'audiences', serverKeys: ['personas-server-key-1'] },
    ],
    destinations: [crm, ...['erp', 'billing', 'warehouse', 'my-service'].map((id) => of(id)), acme],
  }
  const message = {
    type: 'track',
    messageId: 'm1',
    userId: 'u1',
    event: 'Order Completed',
    properties: { total: 200 },
  }
  const change = {
    type: 'membership',
    audienceId: 'aud_1',
    audienceName: 'Big spenders',
    userId: 'u1',
    member: true,
    changedAt: new Date().toISOString(),
  }
  const files: Readonly<Record<string, string>> = {
    'catalog.yaml': stringify(catalog),
    'old.yaml': stringify(catalog),
    'catalog.yaml.old': stringify(catalog),
    'crm.yaml': stringify(crm),
    'acme/acme-shop.yaml': stringify(acme),
    'destinations/acme-shop.yaml': stringify(acme),
    'mappings.yaml': stringify([{ name: 'orders', body: { order: { '@path': '$.properties.orderId' } } }]),
    'message.json': JSON.stringify(message),
    'one-message.json': JSON.stringify(message),
    'messages.ndjson': `${JSON.stringify(message)}\n`,
    'changes.ndjson': `${JSON.stringify(change)}\n`,
    'vips.csv': 'userId\nu1\nu2\nu3\n',
    'private.key': signingKey,
    'segment.json': workspace,
    'sources.json': answerWith('sources'),
    'destinations.json': answerWith('destinations'),
    'subscriptions.json': answerWith('subscriptions'),
    '.config/sluice/token': token,
  }
  // The folder that an import makes.
  rmSync(join(folder, 'secrets'), { recursive: true, force: true })
  for (const name of ['etc/sluice', 'acme', 'destinations', '.config/sluice'])
    mkdirSync(join(folder, name), { recursive: true })
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
}

const signingKey = newSigningKey()

/** Answers of Segment's Public API about a small shop: one a line. */
const workspace = readFileSync(
  resolve(import.meta.dirname, '../unit/segment-import/workspace.ndjson'),
  'utf8',
)

function answerWith(what: string): string {
  return workspace.split('\n').find((line) => line.startsWith(`{"data":{"${what}"`)) ?? '{"data":{}}'
}

/** Starts a server that answers as Segment's Public API does. */
export async function startPublicApi(): Promise<{ readonly origin: string; stop(): void }> {
  const server: Server = createServer(({ url = '' }, response) => {
    const [, what = ''] = /\/(\w+)\?/.exec(url) ?? []
    response.writeHead(200, { 'content-type': 'application/json' }).end(answerWith(what))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('the server has no port')
  return { origin: `http://127.0.0.1:${address.port}`, stop: () => void server.close() }
}
