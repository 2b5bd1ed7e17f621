import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { checkCertificates, RereadFile } from '../../../src/http/reread-file.ts'
import { selfSigned } from '../../support/certificates.ts'

test('a file of certificates that is emptied or cut off is told, and the content before stays in force', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-reread-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'ca.crt')
  const [first, second] = [selfSigned({ names: ['one.test'] }).cert, selfSigned({ names: ['two.test'] }).cert]
  const both = `# our authorities\n${first}\n${second}`
  writeFileSync(path, both)
  const kept: string[] = []
  const onKept = (message: string) => void kept.push(message)
  const file = new RereadFile({ path, setting: 'kafka.caFile', check: checkCertificates, onKept })
  expect(file.read()).toBe(both)
  writeFileSync(path, both.slice(0, -200))
  expect(file.read()).toBe(both)
  expect(kept).toEqual([expect.stringContaining('it was cut off inside of a certificate')])
  writeFileSync(path, both)
  expect(file.read()).toBe(both)
  writeFileSync(path, '')
  expect(file.read()).toBe(both)
  expect(kept).toHaveLength(2)
  expect(kept[1]).toMatch(/: the content read before stays in force$/)
  writeFileSync(path, second)
  expect(file.read()).toBe(second)
})
