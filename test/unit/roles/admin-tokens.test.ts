import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createToken, findToken } from '../../../src/admin/tokens.ts'
import { readConfig } from '../../../src/config/read.ts'
import { openTokens } from '../../../src/roles/admin-tokens.ts'
import { quietLog } from '../../support/emitted-lines.ts'

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
  const tokens = await openTokens(read.config, quietLog)
  onTestFinished(async () => {
    await tokens.stop()
    await rm(folder, { recursive: true })
  })
  expect(findToken(tokens.current(), old.token)?.name).toBe('ann')
  await write(next.line)
  await vi.waitFor(() => expect(findToken(tokens.current(), next.token)?.name).toBe('ann'), 60_000)
  expect(findToken(tokens.current(), old.token)).toBeUndefined()
})

const emptied = 'the token file has no tokens: every request is refused'

test('a change of the token file is logged as a difference, and an emptied file counts from its second look', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-tokens-'))
  const file = join(folder, 'tokens')
  const [ann, bob] = [createToken('ann', 'read'), createToken('bob', 'operate')]
  await writeFile(file, `${ann.line}\n${bob.line}\n`)
  const read = readConfig({ env: { SLUICE_ADMIN_TOKENS_FILE: file } })
  if (!read.ok) throw new Error(read.message)
  const lines: object[] = []
  const take = (line: object, text?: string): void => void lines.push({ ...line, text })
  const tokens = await openTokens(read.config, { info: take, error: take })
  onTestFinished(async () => {
    await tokens.stop()
    await rm(folder, { recursive: true })
  })
  await writeFile(file, `${ann.line}\n`)
  await vi.waitFor(
    () =>
      expect(lines).toMatchObject([
        { tokens: 1, changes: ['-bob operate'], text: 'the token file has changed' },
      ]),
    60_000,
  )
  await writeFile(file, '')
  await vi.waitFor(() => expect(lines[1]).toMatchObject({ changes: ['-ann read'], text: emptied }), 60_000)
  expect(tokens.current()).toEqual([])
  expect(JSON.stringify(lines)).not.toMatch(/[0-9a-f]{64}/)
})
