import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readConfig } from '../../../../src/config/read.ts'
import { stateFolder } from '../../../../src/roles/start/state-folder.ts'

let temporary = ''
let shared = ''

beforeEach(() => {
  temporary = mkdtempSync(join(tmpdir(), 'sluice-state-folder-'))
  shared = join(temporary, 'sluice-state')
})

afterEach(() => rmSync(temporary, { recursive: true, force: true }))

function configOf(env: Record<string, string> = {}) {
  const read = readConfig({ env })
  if (!read.ok) throw new Error(read.message)
  return read.config
}

const refusal = `The state is not kept in`

test('without a setting, the folder is one that only this user may open', () => {
  const folder = stateFolder(configOf(), temporary)
  expect(folder.startsWith(join(shared, '/'))).toBe(true)
  for (const path of [shared, folder]) expect(statSync(path).mode & 0o777).toBe(0o700)
  expect(stateFolder(configOf(), temporary)).toBe(folder)
})

test('a folder in the temporary folder that others may write to is refused', () => {
  mkdirSync(shared)
  chmodSync(shared, 0o777)
  expect(() => stateFolder(configOf(), temporary)).toThrow(`${refusal} ${shared}`)
})

test('a link in the temporary folder is refused', () => {
  const elsewhere = join(temporary, 'elsewhere')
  mkdirSync(elsewhere)
  symlinkSync(elsewhere, shared)
  expect(() => stateFolder(configOf(), temporary)).toThrow(refusal)
})

test('a folder that the setting names may be shared with others', () => {
  mkdirSync(shared)
  chmodSync(shared, 0o777)
  const folder = stateFolder(configOf({ SLUICE_STATE_FOLDER: shared }), temporary)
  expect(existsSync(folder)).toBe(true)
})
