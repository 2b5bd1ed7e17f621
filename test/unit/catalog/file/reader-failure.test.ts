import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { openCatalogFile } from '../../../../src/catalog/file/file.ts'
import { readCatalogText } from '../../../../src/catalog/file/reader.ts'
import { until } from '../../../support/until.ts'

/** Tests of what happens to an edit of the catalog while the reader of catalogs fails. */

const ended: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const end of ended.splice(0).toReversed()) await end()
})

const textOf = (name: string) => `sources:\n  - id: shop\n    name: ${name}\ndestinations: []\n`

test('an edit is read again after a failure of the reader, and refused once until then', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-catalog-'))
  ended.push(() => rm(directory, { recursive: true }))
  const path = join(directory, 'catalog.yaml')
  await writeFile(path, textOf('before'))
  const refusals: string[] = []
  let failures = 0
  const opened = await openCatalogFile({
    path,
    everyMs: 10,
    settleMs: 10,
    againMs: 50,
    readText(text, options) {
      if (failures === 0) return readCatalogText(text, options)
      failures--
      return Promise.reject(new Error('EMFILE: too many open files'))
    },
    onChange() {},
    onRefused: (faults) => refusals.push(faults.map(({ advice }) => advice).join()),
  })
  if (!opened.ok) throw new Error(opened.message)
  const { file } = opened
  ended.push(() => file.stop())

  failures = 3
  await writeFile(path, textOf('after'))
  await until('the edit is in force', () => file.current().sources.get('shop')?.name === 'after')
  expect(refusals).toEqual(['Error: EMFILE: too many open files'])
  expect(file.refused()).toBeUndefined()
})
