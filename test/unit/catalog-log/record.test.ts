import { createHmac, hkdfSync } from 'node:crypto'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { newKeyLine } from '../../../src/catalog-log/keys.ts'
import { RecordSeals } from '../../../src/catalog-log/record.ts'
import { catalogKeys } from '../../support/catalog-log.ts'

const line = newKeyLine('k1')
const secret = Buffer.from(line.split(' ')[1] ?? '', 'base64')
const key = Buffer.from(hkdfSync('sha256', secret, '', 'sluice catalog mac', 32))

/** The HMAC as every version of Sluice makes it. */
function macOf(installation: string, name: string, value: object | null, revision: number): string {
  const hmac = createHmac('sha256', key)
  hmac.update(JSON.stringify([installation, name, revision, value === null]))
  return hmac.update(value === null ? '' : JSON.stringify(value)).digest('hex')
}

const values = fc.option(fc.dictionary(fc.string(), fc.string({ unit: 'binary', maxLength: 2_000 })))

test('a record has the HMAC-SHA256 of its parts, of whatever lengths, and no other is taken', () => {
  const seals = new RecordSeals('test', catalogKeys(line))
  const revisions = fc.integer({ min: 1, max: 2 ** 40 })
  fc.assert(
    fc.property(fc.string(), values, revisions, (name, value, revision) => {
      const { headers = {}, ...written } = seals.write(name, value, revision)
      expect(headers['mac']).toBe(`k1:${macOf('test', name, value, revision)}`)
      const record = {
        key: Buffer.from(name),
        value: written.value === null ? null : Buffer.from(String(written.value)),
        headers: { revision: Buffer.from(String(revision)), mac: Buffer.from(String(headers['mac'])) },
        offset: 7,
        timestampMs: 0,
      }
      const isWhole = Buffer.from(name).toString() === name
      if (isWhole) expect(seals.read(record)).toMatchObject({ ok: true, record: { value, revision } })
      const later = { ...record, headers: { ...record.headers, revision: Buffer.from(String(revision + 1)) } }
      expect(seals.read(later)).toMatchObject({ ok: false })
      for (const mac of ['k1:', 'k1', `k1:${'0'.repeat(64)}`, `${String(headers['mac'])}00`])
        expect(seals.read({ ...record, headers: { ...record.headers, mac: Buffer.from(mac) } }).ok).toBe(
          false,
        )
    }),
    { numRuns: 200 },
  )
})

test('a name with an escape is not read as one of another object', () => {
  const seals = new RecordSeals('test', catalogKeys(line))
  const read = (value: object): unknown => {
    const { headers = {}, ...written } = seals.write('destination/crm', value, 1)
    const headersOf = { revision: Buffer.from('1'), mac: Buffer.from(String(headers['mac'])) }
    const record = { key: Buffer.from('destination/crm'), value: Buffer.from(String(written.value)) }
    return seals.read({ ...record, headers: headersOf, offset: 7, timestampMs: 0 })
  }
  read({ mapping: { second: 1, '\\': 2 } })
  expect(read({ mapping: { second: 1, '\n': 2 } })).toMatchObject({
    record: { value: { mapping: { second: 1, '\n': 2 } } },
  })
})
