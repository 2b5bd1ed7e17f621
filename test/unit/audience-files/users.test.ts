import { randomBytes } from 'node:crypto'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readUsers, type UserList } from '../../../src/audience-files/users.ts'
import { cuts, inPieces, userId } from './chunks.ts'

const csv: UserList = { format: 'csv', column: undefined, hasHeader: true }
const ndjson: UserList = { format: 'ndjson', column: undefined, hasHeader: true }

async function usersOf(text: string | Buffer, list: UserList, lengths: readonly number[] = []) {
  const users: string[] = []
  const read = await readUsers(inPieces(Buffer.from(text), lengths), list, (id) => {
    users.push(id)
    return undefined
  })
  return { read, users }
}

const csvId = userId.filter((id) => !/[\r\n]/.test(id))
const quoted = (field: string): string => `"${field.replaceAll('"', '""')}"`
const isPlain = (field: string): boolean => !/[",\r\n]/.test(field) && !field.startsWith('\ufeff')

/** Returns a field as a writer of CSV may spell it. */
function spelled(field: string, isQuoted: boolean): string {
  return isQuoted || !isPlain(field) ? quoted(field) : field
}

describe('a CSV', () => {
  const row = fc.record({
    id: csvId,
    other: fc.string({ unit: 'grapheme', maxLength: 10 }).filter((text) => text.isWellFormed()),
    isQuoted: fc.boolean(),
    end: fc.constantFrom('\n', '\r\n'),
  })

  test('gives every user as it was written, wherever the file is cut', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(row, { maxLength: 15 }), cuts, async (rows, lengths) => {
        const lines = rows.map(
          ({ id, other, isQuoted, end }) => `${spelled(other, isQuoted)},${spelled(id, isQuoted)}${end}`,
        )
        const { read, users } = await usersOf(`name,userId\r\n${lines.join('')}`, csv, lengths)
        expect(read).toEqual({ ok: true, rows: rows.length })
        expect(users).toEqual(rows.map(({ id }) => id))
      }),
      { numRuns: 2_000 },
    )
  })

  test.each([
    ['the column userId', 'a,userId\nx,u1\n', csv],
    ['the column user_id', 'user_id,a\nu1,x\n', csv],
    ['a column that was named', 'a,Customer ID\nx,u1\n', { ...csv, column: 'Customer ID' }],
    ['the first column without a header', 'u1,x\n', { ...csv, hasHeader: false }],
    ['a column with a number', 'x,u1\n', { ...csv, hasHeader: false, column: '2' }],
    ['a last line without an end', 'userId\nu1', csv],
    ['empty lines', 'userId\n\nu1\n\n', csv],
    ['a byte order mark', '\ufeffuserId\nu1\n', csv],
    ['a byte order mark and quotation marks', '\ufeff"userId"\n"u1"\n', csv],
  ])('may have %s', async (_what, text, list) => {
    expect(await usersOf(text, list)).toEqual({ read: { ok: true, rows: 1 }, users: ['u1'] })
  })

  test('may name nobody', async () => {
    expect(await usersOf('userId\n', csv)).toEqual({ read: { ok: true, rows: 0 }, users: [] })
    expect(await usersOf('', csv)).toEqual({ read: { ok: true, rows: 0 }, users: [] })
  })

  test.each([
    ['no such column', 'id,name\nu1,x\n', csv, 1, 'names no column userId or user_id, but "id", "name"'],
    ['no such number', 'u1,x\n', { ...csv, hasHeader: false, column: '3' }, 1, '--column is a number'],
    ['a row without a user', 'userId,a\nu1,x\n,y\n', csv, 3, 'an empty user id'],
    ['a short row', 'a,userId\nx,u1\ny\n', csv, 3, 'more or fewer columns'],
    ['a long row', 'a,userId\nx,u1\ny,u2,z\n', csv, 3, 'more or fewer columns'],
    ['a quotation mark that is never closed', 'userId\nu1\n"u2\nu3\nu4\n', csv, 3, 'never closed'],
    ['a quotation mark too many', 'userId\n"u1\nu2"\nu3\n', csv, 3, 'a line break'],
    ['a quotation mark in a value', 'userId\nu1\nu"2\n', csv, 3, 'a quotation mark in the middle'],
    ['a user id that is too long', `userId\n${'x'.repeat(1_001)}\n`, csv, 2, 'over 1000 characters'],
    ['bytes that are no UTF-8', Buffer.from('userId\nu1\nZo\xeb\n', 'latin1'), csv, 3, 'UTF-8'],
  ])('with %s is refused, with the line', async (_what, text, list, line, problem) => {
    const { read } = await usersOf(text, list)
    expect(read).toEqual({ ok: false, fault: { line, problem: expect.stringContaining(problem) } })
  })

  test('that is one endless value is refused before memory runs out', async () => {
    let given = 0
    async function* endless(): AsyncGenerator<Buffer> {
      yield Buffer.from('userId\n"')
      for (;;) {
        given++
        yield Buffer.from('u1\n'.repeat(10_000))
      }
    }
    const read = await readUsers(endless(), csv, () => undefined)
    expect(read).toMatchObject({ ok: false, fault: { problem: expect.stringContaining('never closed') } })
    expect(given).toBeLessThan(100)
  })

  test('tells the line of each user', async () => {
    const lines: number[] = []
    await readUsers(inPieces(Buffer.from('userId\n\nu1\n"u2"\r\nu3'), [9, 3]), csv, (_id, line) => {
      lines.push(line)
      return undefined
    })
    expect(lines).toEqual([3, 4, 5])
  })

  test('ends with the first user that is objected to', async () => {
    const taken: string[] = []
    const read = await readUsers(inPieces(Buffer.from('userId\nu1\nu2\nu3\n'), []), csv, (id) => {
      taken.push(id)
      return id === 'u2' ? 'is too much' : undefined
    })
    expect(read).toEqual({ ok: false, fault: { line: 3, problem: 'is too much' } })
    expect(taken).toEqual(['u1', 'u2'])
  })
})

describe('a file that is no text is refused before its first user, wherever it is cut:', () => {
  const rows = 'userId\nu1\nu2\n'
  const kinds: [what: string, file: Buffer | string, says: string][] = [
    ['gzip', gzipSync(rows), 'gunzip'],
    ['zstd', zstdCompressSync(rows), 'unzstd'],
    ['a spreadsheet', Buffer.from('504b0304140006000800', 'hex'), 'save the sheet as CSV'],
    ['an old spreadsheet', Buffer.from('d0cf11e0a1b11ae1', 'hex'), 'save the sheet as CSV'],
    ['Parquet', 'PAR1\u0015\u0004', 'Parquet'],
    ['UTF-16', Buffer.from(`\ufeff${rows}`, 'utf16le'), 'save the file as UTF-8'],
    [
      'UTF-16, the other way round',
      Buffer.from(`\ufeff${rows}`, 'utf16le').swap16(),
      'save the file as UTF-8',
    ],
    ['a page', '<!DOCTYPE html>\n<html>', 'get the file again'],
    ['a page after lines and a byte order mark', '\ufeff\r\n\n<HTML lang="en">', 'get the file again'],
    ['an answer in XML', '<?xml version="1.0"?>\n<Error>', 'get the file again'],
  ]

  test.each(kinds)('%s', async (_what, file, says) => {
    for (const list of [csv, { ...csv, hasHeader: false }, ndjson]) {
      for (const lengths of [[], [1, 1, 1, 1, 1, 1]]) {
        const fault = { line: 1, problem: expect.stringContaining(says) }
        expect(await usersOf(file, list, lengths)).toEqual({ read: { ok: false, fault }, users: [] })
      }
    }
  })

  test('and the file is not read any further', async () => {
    let isClosed = false
    async function* file(): AsyncGenerator<Buffer> {
      try {
        yield gzipSync(randomBytes(1_000))
        yield Buffer.from('u1\n')
      } finally {
        isClosed = true
      }
    }
    expect(await readUsers(file(), csv, () => undefined)).toMatchObject({ ok: false })
    expect(isClosed).toBe(true)
  })
})

describe('an NDJSON', () => {
  test('gives every user as it was written, wherever the file is cut', async () => {
    const line = fc.record({ id: userId, isObject: fc.boolean(), isEscaped: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 15 }), cuts, async (lines, lengths) => {
        const texts = lines.map(({ id, isObject, isEscaped }) => {
          const text = JSON.stringify(isObject ? { a: 1, userId: id } : id)
          return isEscaped && !text.includes('\\') ? text.replaceAll('u', '\\u0075') : text
        })
        const { read, users } = await usersOf(texts.join('\n'), ndjson, lengths)
        expect(read).toEqual({ ok: true, rows: lines.length })
        expect(users).toEqual(lines.map(({ id }) => id))
      }),
      { numRuns: 1_000 },
    )
  })

  test('may have the ids in a field that was named', async () => {
    const list = { ...ndjson, column: 'id' }
    expect((await usersOf('{"userId":"no","id":"u1"}\r\n', list)).users).toEqual(['u1'])
  })

  test.each([
    ['no JSON', '"u1"\n{u2}\n', 2, 'no JSON'],
    ['a number', '"u1"\n2\n', 2, 'no text'],
    ['a null', 'null', 1, 'no text'],
    ['an object without the field', '{"id":"u1"}', 1, 'no field userId or user_id'],
    ['an id that is a number', '{"userId":1}', 1, 'no text'],
    ['an empty id', '""', 1, 'empty'],
    ['half a character', '"\\ud800"', 1, 'lone surrogate'],
    ['the replacement character', '"a\\ufffd"', 1, 'U+FFFD'],
  ])('with %s is refused, with the line', async (_what, text, line, problem) => {
    const { read } = await usersOf(text, ndjson)
    expect(read).toEqual({ ok: false, fault: { line, problem: expect.stringContaining(problem) } })
  })
})
