import {
  appendFileSync,
  mkdtempSync,
  renameSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { openInput } from '../../../../src/commands/command/upstream-input.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-input-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Reads a file of several chunks, and calls `meanwhile` after the first chunk. */
async function readWhile(name: string, meanwhile: (file: string) => void): Promise<number> {
  const file = join(folder, name)
  writeFileSync(file, 'u1\n'.repeat(1_000_000))
  const { chunks } = await openInput(file)
  let bytes = 0
  for await (const chunk of chunks) {
    if (bytes === 0) meanwhile(file)
    bytes += chunk.length
  }
  return bytes
}

test('a file that nobody touches is read to its end', async () => {
  expect(await readWhile('still.csv', () => undefined)).toBe(3_000_000)
})

test.each<[how: string, meanwhile: (file: string) => void]>([
  ['gets longer', (file) => appendFileSync(file, 'u2\n')],
  ['gets shorter', (file) => truncateSync(file, 1_000_000)],
  [
    'is replaced',
    (file) => {
      writeFileSync(`${file}.new`, 'u2\n')
      renameSync(`${file}.new`, file)
    },
  ],
  [
    'has another content of the same length',
    (file) => {
      writeFileSync(file, 'u2\n'.repeat(1_000_000))
      utimesSync(file, 1, 1)
    },
  ],
])(
  'a file that %s while it is read is refused, because a part of it may be missing',
  async (how, meanwhile) => {
    await expect(readWhile(`${how}.csv`, meanwhile)).rejects.toThrow(
      /was written while it was read \(3000000 bytes before.*Nothing was sent/,
    )
  },
)
