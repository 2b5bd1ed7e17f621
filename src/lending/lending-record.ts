import { Type } from 'typebox'
import { Compile } from 'typebox/compile'

// What a member tells the others about destinations' rates is a record of the topic `lending`. It has a
// meaning for a few seconds only.

/** The parts of the group's rates that a member lends to another one. */
export type Answer = {
  /** The number of the borrower's record that is answered. */
  readonly number: number
  /** A fraction of the group's rate for each destination, above 0 and below 1. */
  readonly parts: ReadonlyMap<string, number>
}

export type LendingRecord = {
  /** The member. A process that starts again is another member. */
  readonly from: string
  /** The generation of the consumer group in which the member has its partitions. */
  readonly generation: number
  /** The records of a member are numbered. */
  readonly number: number
  /** The destinations of which the member has more messages than its part of the rate, and how many. */
  readonly wants: ReadonlyMap<string, number>
  /** By borrower. An answer replaces what the member has lent this borrower before. */
  readonly answers: ReadonlyMap<string, Answer>
}

const amounts = Type.Record(Type.String(), Type.Number({ exclusiveMinimum: 0 }))
const schema = Type.Object({
  v: Type.Literal(1),
  from: Type.String({ minLength: 1 }),
  generation: Type.Integer(),
  number: Type.Integer({ minimum: 1 }),
  wants: amounts,
  answers: Type.Record(Type.String(), Type.Object({ number: Type.Integer(), parts: amounts })),
})
const check = Compile(schema)

export function encodeLending({ from, generation, number, wants, answers }: LendingRecord): Buffer {
  const written = [...answers].map(([borrower, answer]) => [
    borrower,
    { number: answer.number, parts: Object.fromEntries(answer.parts) },
  ])
  const wanted = Object.fromEntries(wants)
  return Buffer.from(
    JSON.stringify({ v: 1, from, generation, number, wants: wanted, answers: Object.fromEntries(written) }),
  )
}

/** Decodes a record of `lending`. Returns `undefined` if it has another form. Never throws. */
export function decodeLending(value: Buffer | null): LendingRecord | undefined {
  let parsed: unknown
  try {
    parsed = JSON.parse(String(value))
  } catch {
    return undefined
  }
  if (!check.Check(parsed)) return undefined
  const { from, generation, number, wants, answers } = parsed
  return {
    from,
    generation,
    number,
    wants: new Map(Object.entries(wants)),
    answers: new Map(
      Object.entries(answers).map(([borrower, { number: answered, parts }]) => [
        borrower,
        { number: answered, parts: new Map(Object.entries(parts)) },
      ]),
    ),
  }
}
