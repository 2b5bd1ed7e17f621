import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { readConfig } from '../../../../src/config/read.ts'
import { createCatalog } from '../../../../src/catalog/catalog.ts'
import type { OpenedDesk } from '../../../../src/roles/operations/catalog-desk.ts'
import { catalogCalls, deskCalls } from '../../../../src/roles/catalog-calls.ts'
import { adminRequest } from '../../../support/admin-request.ts'

const main = resolve(import.meta.dirname, '../../../../src/main.ts')

function run(args: readonly string[]) {
  const { status, stderr, stdout } = spawnSync(process.execPath, [main, ...args], {
    encoding: 'utf8',
    env: { ...process.env, SLUICE_CATALOG_FILE: 'shop.yaml', SLUICE_KAFKA_BROKERS: '127.0.0.1:1' },
  })
  return { status, stderr, stdout }
}

test.each([
  [['destinations', 'pause', 'crm'], 'Write `state: paused` into the entry of the destination crm'],
  [['destinations', 'pause', '--label', 'tenant=acme', '--yes'], 'Write `state: paused` into the entries'],
  [['destinations', 'resume', '--search', 'crm'], 'Write `state: on` into the entries'],
  [['destinations', 'get', 'crm'], '`sluice destinations status crm` says how it is'],
  [
    ['destinations', 'set', 'crm', '--rate', '20', '--timeout', 'none'],
    'In the entry of the destination crm, write `rateLimit: {"perSecond":20}` into it, and remove `timeout` from it',
  ],
  [['destinations', 'set', 'crm', 'no-such-file.yaml'], 'Edit the entry of the destination crm'],
  [['destinations', 'create', 'crm', '--url', 'https://example.com'], 'Write an entry with `id: crm` below'],
  [['destinations', 'rm', 'crm'], 'Remove the entry of the destination crm. What waits for it becomes dead'],
  [['destinations', 'rotate', 'crm'], 'Write the new secret as `nextSharedSecret` beside `sharedSecret`'],
  [['destinations', 'rotate', 'crm', '--end'], 'Move `nextSharedSecret` to `sharedSecret`'],
  [['destinations', 'rotate', 'crm', '--ed25519'], 'Add a key to `signing.ed25519`'],
  [['destinations', 'rotate', 'crm', '--ed25519', '--end'], 'Remove the old key from `signing.ed25519`'],
  [['sources', 'list'], '`GET /v1/sources`'],
  [['sources', 'get', 'shop'], 'Look there for the entry of the source shop'],
  [['sources', 'rm', 'shop'], 'Remove the entry of the source shop, and its id from `sources`'],
  [['sources', 'key', 'shop'], 'Add a key to `writeKeys` of the source shop'],
  [['sources', 'key', 'shop', '--end', 'wk_1'], 'Remove the key from `writeKeys` of the source shop'],
  [['catalog', 'history'], 'in the version control of that file'],
  [['catalog', 'undo', '1'], 'Take the change back there'],
  [['catalog', 'export'], 'The file itself is the export'],
  [['apply', '-f', 'no-such-folder'], 'catalog.file may be a folder'],
  [['tokens', 'list'], '`sluice admin token create`'],
])(
  'with the catalog in a file, `sluice %j` says what to do there, before it asks or needs Kafka',
  (args, way) => {
    const { status, stderr, stdout } = run(args)
    expect(stderr).toContain('The catalog is in shop.yaml (catalog.source=file)')
    expect(stderr).toContain(way)
    expect(stdout).toBe('')
    expect(status).toBe(2)
  },
)

test.each([
  [{ state: 'paused' }, 'Write `state: paused` into the entry of the destination crm'],
  [{ state: 'on' }, 'Write `state: on` into the entry of the destination crm'],
  // Other fields may be secret.
  [{ sharedSecret: 'planted' }, 'Edit the entry of the destination crm'],
])(
  'with the catalog in a file, a patch with %j over HTTP is refused, and says what to do there',
  async (body, way) => {
    const read = readConfig({ env: {} })
    if (!read.ok) throw new Error(read.message)
    const { config } = read
    const log = { error: () => undefined, info: () => undefined, warn: () => undefined }
    const { patch_destination } = catalogCalls(deskCalls<OpenedDesk>(undefined, config, log), () =>
      createCatalog([], [], ''),
    )
    const answer = await patch_destination(adminRequest({ params: { destination: 'crm' }, body }))
    expect(answer).toMatchObject({ status: 409, body: { detail: expect.stringContaining(way) } })
    expect(JSON.stringify(answer)).not.toContain('planted')
  },
)
