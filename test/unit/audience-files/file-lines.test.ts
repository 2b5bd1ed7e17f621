import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { eachLine } from '../../../src/audience-files/file-lines.ts'
import { cuts, inPieces } from './chunks.ts'

async function linesOf(bytes: Buffer, lengths: readonly number[] = []) {
  const lines: [text: string, line: number][] = []
  const read = await eachLine(inPieces(bytes, lengths), (text, line) => {
    lines.push([text, line])
    return undefined
  })
  return { read, lines }
}

describe('lines', () => {
  test('come as they are, with their numbers, wherever the file is cut', async () => {
    const line = fc
      .string({ unit: 'grapheme', maxLength: 20 })
      .filter((text) => text.isWellFormed() && !text.includes('\n') && !text.startsWith('\ufeff'))
    await fc.assert(
      fc.asyncProperty(
        fc.array(line, { maxLength: 20 }),
        cuts,
        fc.boolean(),
        async (texts, lengths, isEnded) => {
          const { read, lines } = await linesOf(
            Buffer.from(texts.join('\n') + (isEnded ? '\n' : '')),
            lengths,
          )
          expect(read).toEqual({ ok: true })
          const all = texts.map((text, index): [string, number] => [text, index + 1])
          expect(lines).toEqual(all.filter(([text]) => text.trim() !== ''))
        },
      ),
      { numRuns: 2_000 },
    )
  })

  test('begin without a byte order mark', async () => {
    expect((await linesOf(Buffer.from('\ufeffa\n\ufeffb'))).lines).toEqual([
      ['a', 1],
      ['\ufeffb', 2],
    ])
  })

  test('that are no UTF-8 are a fault, of a character that was cut too', async () => {
    const bytes = Buffer.concat([Buffer.from('a\nb\n'), Buffer.from([0x7a, 0xe4, 0x0a]), Buffer.from('c')])
    const { read, lines } = await linesOf(bytes)
    expect(read).toEqual({ ok: false, fault: { line: 3, problem: expect.stringContaining('UTF-8') } })
    expect(lines).toHaveLength(2)
  })

  test('may hold the character that stands for what is no UTF-8', async () => {
    expect((await linesOf(Buffer.from('a\ufffd\n'))).lines).toEqual([['a\ufffd', 1]])
  })

  test('end with the first that is objected to', async () => {
    const seen: string[] = []
    const read = await eachLine(inPieces(Buffer.from('a\n\nb\nc\n'), []), (text) => {
      seen.push(text)
      return text === 'b' ? 'is wrong' : undefined
    })
    expect(read).toEqual({ ok: false, fault: { line: 3, problem: 'is wrong' } })
    expect(seen).toEqual(['a', 'b'])
  })

  test('may be as long as the longest message that a setting allows', async () => {
    const bytes = 16 * 1024 ** 2
    const lengths: number[] = []
    const read = await eachLine(inPieces(Buffer.alloc(bytes, 'x'), []), (text) => {
      lengths.push(text.length)
      return undefined
    })
    expect([read, lengths]).toEqual([{ ok: true }, [bytes]])
  })

  test('that never end are a fault, and are not kept', async () => {
    let given = 0
    async function* endless(): AsyncGenerator<Buffer> {
      for (;;) {
        given++
        yield Buffer.alloc(256 * 1024, 'x')
      }
    }
    const read = await eachLine(endless(), () => undefined)
    expect(read).toEqual({
      ok: false,
      fault: { line: 1, problem: expect.stringContaining('longer than 16 MiB') },
    })
    expect(given).toBeLessThan(100)
  })
})
