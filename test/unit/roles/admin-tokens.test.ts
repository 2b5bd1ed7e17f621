import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createToken, findToken } from '../../../src/admin/tokens.ts'
import { readConfig } from '../../../src/config/read.ts'
import { openTokens } from '../../../src/roles/admin-tokens.ts'

test('a token that another one of the same length replaces is valid no more, whatever the time of the file is', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-tokens-'))
  const file = join(folder, 'tokens')
  const [old, next] = [createToken('ann', 'read'), createToken('ann', 'read')]
  // Some tools give each file that they make the same time.
  const write = async (line: string): Promise<void> => {
    await writeFile(file, `${line}\n`)
    await utimes(file, 1, 1)
  }
  await write(old.line)
  const read = readConfig({ env: { SLUICE_ADMIN_TOKENS_FILE: file } })
  if (!read.ok) throw new Error(read.message)
  const tokens = await openTokens(read.config, { info() {}, error() {} })
  onTestFinished(async () => {
    await tokens.stop()
    await rm(folder, { recursive: true })
  })
  expect(findToken(tokens.current(), old.token)?.name).toBe('ann')
  await write(next.line)
  await vi.waitFor(() => expect(findToken(tokens.current(), next.token)?.name).toBe('ann'), 5_000)
  expect(findToken(tokens.current(), old.token)).toBeUndefined()
})
