import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { folderInUse, lockFolder } from '../../../src/delivery-log/sqlite/folder-lock.ts'

const lockModule = new URL('../../../src/delivery-log/sqlite/folder-lock.ts', import.meta.url)

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-lock-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

test('a folder of the index has one writer at a time', () => {
  const folder = newFolder()
  const first = lockFolder(folder)
  expect(() => lockFolder(folder)).toThrow(folderInUse)
  first.close()
  lockFolder(folder).close()
})

test('a thread that has failed keeps no folder locked', async () => {
  const folder = newFolder()
  const code = `import(${JSON.stringify(lockModule.href)}).then(({ lockFolder }) => {
    globalThis.lock = lockFolder(${JSON.stringify(folder)})
    setTimeout(() => { throw new Error('the disk is gone') }, 0)
  })`
  const thread = new Worker(code, { eval: true })
  const [error] = await once(thread, 'error')
  expect(error).toMatchObject({ message: 'the disk is gone' })
  lockFolder(folder).close()
})
