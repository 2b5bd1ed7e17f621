import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Scene, setScene } from '../e2e/scene.ts'
import { type AdminTokens, makeTokens } from '../support/admin.ts'
import { type SluiceProcess, startSluice } from '../support/worker-process.ts'
import { examineApi } from './schemathesis.ts'

let scene: Scene
let tokens: AdminTokens
let admin: SluiceProcess
let index: SluiceProcess
let folder: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-schemathesis-'))
  tokens = await makeTokens()
  scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: [{ id: 'erp', sources: ['shop'], hooks: [{ url: 'https://example.com/' }] }],
    },
    variables: {
      SLUICE_ADMIN_TOKENS_FILE: tokens.file,
      SLUICE_INDEX_FOLDER: join(folder, 'index'),
      SLUICE_ATTEMPTS_USER_KEY: 'a key of more than sixteen characters',
    },
  })
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
