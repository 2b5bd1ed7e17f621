import { CsvError, parse, type Parser } from 'csv-parse'
import { userIdCheck } from '../message/audience-change.ts'
import { parseJson } from '../message/json/json.ts'
import { eachLine, type LineFault, openText } from './file-lines.ts'

/**
 * The format of a file of users. A `csv` file has a row for each user. An `ndjson` file has a JSON text or
 * object on each line.
 */
export type UserFormat = 'csv' | 'ndjson'

export type UserList = {
  readonly format: UserFormat
  /**
   * The name of the column (`csv`) or of the field (`ndjson`) that has the user ids. If `undefined`, the name
   * is `userId` or `user_id`.
   */
  readonly column: string | undefined
  /**
   * True if the first row of a CSV file names the columns. If false, `column` is the number of the column
   * that has the ids. The default is the first column.
   */
  readonly hasHeader: boolean
}

export type UsersRead = { ok: true; rows: number } | { ok: false; fault: LineFault }

/** Takes a user id and its line, counted from 1. Returns a problem if the id can't be used. */
type TakeUser = (userId: string, line: number) => string | undefined

/**
 * Reads the users that a file lists, and passes each user id to `take` unchanged. Memory doesn't grow with
 * the file. Stops at the first row that has no valid user id, or for which `take` returns a problem.
 */
export async function readUsers(
  input: AsyncIterable<Buffer>,
  list: UserList,
  take: TakeUser,
): Promise<UsersRead> {
  const counted: Counted = { rows: 0, take }
  const fault =
    list.format === 'csv' ? await readCsv(input, list, counted) : await readNdjson(input, list, counted)
  return fault === undefined ? { ok: true, rows: counted.rows } : { ok: false, fault }
}

type Counted = { rows: number; readonly take: TakeUser }

const usualColumns = ['userId', 'user_id']

async function readNdjson(
  input: AsyncIterable<Buffer>,
  { column }: UserList,
  counted: Counted,
): Promise<LineFault | undefined> {
  const names = column === undefined ? usualColumns : [column]
  const read = await eachLine(input, (text, line) => {
    const parsed = parseJson(text)
    if (!parsed.ok)
      return 'is no JSON: write a user id in quotation marks, or an object, on a line of its own'
    const { value } = parsed
    if (typeof value !== 'object' || value === null) return takeUser(value, line, counted)
    const field = Object.entries(value).find(([name]) => names.includes(name))
    if (field === undefined) return `has no field ${names.join(' or ')}: name the field with --column`
    return takeUser(field[1], line, counted)
  })
  return read.ok ? undefined : read.fault
}

/**
 * The line ends that the parser recognizes. Without this list, the parser would recognize only one kind of
 * line end: the kind that occurs first in the file.
 */
const recordEnds = ['\r\n', '\n']
/**
 * The longest row, in characters. If a row is longer, it most likely has a quotation mark too many or too
 * few.
 */
const maxRowCharacters = 1024 ** 2

async function readCsv(
  input: AsyncIterable<Buffer>,
  list: UserList,
  counted: Counted,
): Promise<LineFault | undefined> {
  let fault: LineFault | undefined
  let column: number | undefined
  let lastLine = 0
  const takeRow = (row: readonly string[], line: number): string | undefined => {
    if (column === undefined) {
      const found = findColumn(row, list)
      if (!found.ok) return found.problem
      column = found.index
      if (list.hasHeader) return undefined
    }
    const userId = row[column]
    if (userId !== undefined && /[\r\n]/.test(userId)) {
      return 'has a user id with a line break: a quotation mark is missing, or one too many'
    }
    return takeUser(userId, line, counted)
  }
  const text = await openText(input)
  if (!text.ok) return { line: 1, problem: text.problem }
  const parser = parse({
    bom: true,
    record_delimiter: recordEnds,
    skip_empty_lines: true,
    max_record_size: maxRowCharacters,
    on_record(row: string[], { lines }) {
      if (fault !== undefined) return null
      lastLine = lines
      const problem = takeRow(row, lines)
      if (problem !== undefined) fault = { line: lines, problem }
      // The parser must not output the row, because `takeRow` has already handled it.
      return null
    },
  })
  // The callbacks of `write` and `end` get each error. But without this listener, the error would also end
  // the process.
  parser.on('error', () => undefined)
  parser.resume()
  try {
    for await (const chunk of text.chunks) {
      const error = await outcomeOf((done) => parser.write(chunk, done))
      if (error !== undefined) return explain(error, parser, lastLine)
      if (fault !== undefined) return fault
    }
    const error = await outcomeOf((done) => parser.end(done))
    return error === undefined ? fault : explain(error, parser, lastLine)
  } finally {
    parser.destroy()
  }
}

function outcomeOf(begin: (done: (error?: Error | null) => void) => void): Promise<CsvError | undefined> {
  return new Promise((resolve, reject) => {
    begin((error) => {
      if (error instanceof CsvError) resolve(error)
      else if (error) reject(error)
      else resolve(undefined)
    })
  })
}

type FoundColumn = { ok: true; index: number } | { ok: false; problem: string }

function findColumn(first: readonly string[], { column, hasHeader }: UserList): FoundColumn {
  if (!hasHeader) {
    const number = column === undefined ? 1 : Number(column)
    if (Number.isInteger(number) && number >= 1 && number <= first.length) {
      return { ok: true, index: number - 1 }
    }
    return {
      ok: false,
      problem: `has ${countOf(first.length, 'column')}: with --no-header --column is a number from 1 to that`,
    }
  }
  const names = column === undefined ? usualColumns : [column]
  const index = first.findIndex((name) => names.includes(name))
  if (index !== -1) return { ok: true, index }
  const shown = first
    .slice(0, maxShownColumns)
    .map((name) => JSON.stringify(name.slice(0, maxShownCharacters)))
  const more = first.length > maxShownColumns ? ', …' : ''
  return {
    ok: false,
    problem: `names no column ${names.join(' or ')}, but ${shown.join(', ')}${more}: name the column with --column, or say --no-header where this is a user already`,
  }
}

const maxShownColumns = 10
const maxShownCharacters = 40

function countOf(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

/**
 * Describes an error of csv-parse, but leaves out the text that the error quotes. `lastLine` is the line of
 * the last row that could be read.
 */
function explain(error: CsvError, { info }: Parser, lastLine: number): LineFault {
  const { lines: line } = info
  switch (error.code) {
    case 'CSV_RECORD_INCONSISTENT_FIELDS_LENGTH':
      return { line, problem: 'has more or fewer columns than the first line: correct it' }
    case 'CSV_INVALID_CLOSING_QUOTE':
    case 'INVALID_OPENING_QUOTE':
      return {
        line,
        problem:
          'has a quotation mark in the middle of a value: put the value in quotation marks, and double those in it',
      }
    case 'CSV_QUOTE_NOT_CLOSED':
    case 'CSV_MAX_RECORD_SIZE':
      return { line: lastLine + 1, problem: 'has a value whose quotation mark is never closed: close it' }
    default:
      return { line, problem: `can not be read as CSV (${error.code})` }
  }
}

const maxUserIdCharacters = 1_000

function takeUser(userId: unknown, line: number, counted: Counted): string | undefined {
  if (typeof userId !== 'string') return 'has a user id that is no text: write it in quotation marks'
  const problem = userIdProblem(userId) ?? counted.take(userId, line)
  if (problem === undefined) counted.rows++
  return problem
}

/** Returns the reason why a text is no valid user id. Returns `undefined` if the text is valid. */
export function userIdProblem(userId: string): string | undefined {
  if (userId === '') return 'has an empty user id'
  if (!userIdCheck.Check(userId)) return `has a user id of over ${maxUserIdCharacters} characters`
  if (!userId.isWellFormed()) return 'has a user id with half a character in it (a lone surrogate)'
  if (userId.includes('\ufffd')) {
    return 'has a user id with the character U+FFFD, which stands for bytes that are not UTF-8: save the file as UTF-8'
  }
  return undefined
}
