import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createExamination } from '../../../src/telemetry/examination.ts'
import { until } from '../../support/until.ts'

let folder: string
let lines: Record<string, unknown>[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-examined-'))
  lines = []
})

afterEach(() => rmSync(folder, { recursive: true }))

const logger = (level: string) =>
  pino({ level, base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) })

test('an examination writes a profile of the CPU and one of the heap, and says where they are', async () => {
  await createExamination({ log: logger('info'), folder, profiledMs: 50, loudMs: 50, place: 2 })()
  const files = readdirSync(folder)
  expect(
    files.map((file) => file.replace(/^sluice-2-\d+-.*\./, '')).toSorted((a, b) => (a < b ? -1 : 1)),
  ).toEqual(['cpuprofile', 'heapprofile'])
  const texts = files.map((file) => readFileSync(join(folder, file), 'utf8'))
  expect(texts.map((text) => Object.keys(JSON.parse(text)).length > 0)).toEqual([true, true])
  expect(lines.at(-1)).toMatchObject({
    files: [expect.any(String), expect.any(String)],
    msg: 'the profiles are written: open them in the developer tools of Chromium',
  })
})

test('the level of the log is debug meanwhile, and as before afterwards', async () => {
  const log = logger('warn')
  const examining = createExamination({ log, folder, profiledMs: 50, loudMs: 100 })()
  expect(log.level).toBe('debug')
  await examining
  await until('the level is as before', () => log.level === 'warn')
  const louder = logger('trace')
  await createExamination({ log: louder, folder, profiledMs: 1, loudMs: 1 })()
  expect(louder.level).toBe('trace')
})

test('a second call has no effect while the first one runs', async () => {
  const examine = createExamination({ log: logger('info'), folder, profiledMs: 50, loudMs: 1 })
  await Promise.all([examine(), examine()])
  expect(readdirSync(folder)).toHaveLength(2)
})

test('a folder that can not be written is told, and the process goes on', async () => {
  const log = logger('info')
  await createExamination({ log, folder: '/dev/null/none', profiledMs: 1, loudMs: 1 })()
  expect(lines.at(-1)).toMatchObject({ msg: 'this process could not be examined' })
})
