import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newKeyLine } from '../../src/catalog-log/keys.ts'
import { type Scene, setScene } from '../e2e/scene.ts'
import { type AdminTokens, makeTokens } from '../support/admin.ts'
import { runSluice, type SluiceProcess, startSluice } from '../support/worker-process.ts'
import { examineApi } from './schemathesis.ts'

/** The ids are those of the examples in the document, so that the calls find something. */
const catalog = {
  sources: [{ id: 'shop', writeKeys: ['shop-write-key'] }],
  destinations: [
    { id: 'erp', sources: ['shop'], hooks: [{ url: 'https://example.com/' }] },
    {
      id: 'crm',
      sources: ['shop'],
      sharedSecret: 'a-secret',
      hooks: [{ id: 'main', url: 'https://example.com/' }],
    },
  ],
}

describe.each(['file', 'topic'])('with the catalog in a %s', (source) => {
  let scene: Scene
  let tokens: AdminTokens
  let admin: SluiceProcess
  let index: SluiceProcess
  let folder: string

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-schemathesis-'))
    tokens = await makeTokens()
    writeFileSync(join(folder, 'keys'), newKeyLine())
    scene = await setScene({
      catalog,
      variables: {
        SLUICE_ADMIN_TOKENS_FILE: tokens.file,
        SLUICE_INDEX_FOLDER: join(folder, 'index'),
        SLUICE_ATTEMPTS_USER_KEY: 'a key of more than sixteen characters',
        SLUICE_CATALOG_SOURCE: source,
        ...(source === 'topic' && { SLUICE_CATALOG_KEYS_FILE: join(folder, 'keys') }),
      },
    })
    if (source === 'topic') await runSluice(['catalog', 'import', scene.catalog.path], scene.variables)
    index = await startSluice(scene.variables, { role: 'log serve' })
    admin = await startSluice(scene.variables, { role: 'admin' })
  })

  afterAll(async () => {
    await Promise.all([admin, index].map((one) => one?.kill()))
    scene.close()
    tokens.remove()
    rmSync(folder, { recursive: true, force: true })
  })

  test('whatever is sent to the admin API is never answered with a fault of the server, and always as its document says', async () => {
    await examineApi(`http://127.0.0.1:${admin.adminPort}`, {
      folder,
      forS: 60,
      // The answer of a live view has no end.
      args: [`--header=Authorization: Bearer ${tokens.admin}`, '--exclude-path=/v1/live'],
    })
    const answered = (status: string) => admin.metric('sluice_admin_requests_total', { status })
    expect(await answered('200')).toBeGreaterThan(50)
    expect(await answered('400')).toBeGreaterThan(50)
    expect(await answered('500')).toBe(0)
    expect(await answered('503')).toBe(0)
  })
})
