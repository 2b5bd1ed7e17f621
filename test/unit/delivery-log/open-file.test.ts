import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { slotPath } from '../../../src/delivery-log/sqlite/log-files.ts'
import { SlotReader } from '../../../src/delivery-log/sqlite/slot-reader.ts'
import { SlotWriter } from '../../../src/delivery-log/sqlite/slot-writer.ts'

const slot = 500_000

/** Locks a new file as a whole for half a second, as its writer does until it has its journal. */
async function lockForAWhile(path: string): Promise<void> {
  const code = `
    const { DatabaseSync } = require('node:sqlite')
    const { parentPort } = require('node:worker_threads')
    const database = new DatabaseSync(${JSON.stringify(path)})
    database.exec('CREATE TABLE other (n INTEGER); BEGIN EXCLUSIVE')
    parentPort.postMessage('locked')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
    database.exec('COMMIT')
    database.close()`
  const thread = new Worker(code, { eval: true })
  onTestFinished(async () => void (await thread.terminate()))
  await once(thread, 'message')
}

function newFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-open-file-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return slotPath(folder, slot)
}

test('a reader waits for a new file that its writer has locked', async () => {
  const path = newFile()
  await lockForAWhile(path)
  const reader = new SlotReader(slot, path)
  // The file isn't locked any more, and has no tables yet.
  expect(() => reader.rows).toThrow('no such table')
  reader.close()
})

test('a writer waits for a file that another one has locked', async () => {
  const path = newFile()
  await lockForAWhile(path)
  const writer = new SlotWriter(slot, path)
  writer.close()
  const reader = new SlotReader(slot, path)
  expect(reader.rows).toBe(0)
  reader.close()
})
