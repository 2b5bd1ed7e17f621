import { judging } from '../../bench/refusals/costs.ts'
import { filled, members, type Piece } from '../../bench/refusals/hostile-json.ts'
import { costRatio } from './cost.ts'
import { rewriteOrdinaryBody } from './ordinary-body.ts'
import { Random } from './random.ts'

// Prints how many times as much as an ordinary body a batch costs a gateway that has 30 KB of fresh keys for all
// of its messages. This is a process of its own, because a test's runner changes how modules reach each other,
// which makes loops over bytes several times as slow, but not V8's work for keys.

/** A body is seldom read twice, because V8 would know its keys. */
const count = 500
const enough = 0.8

const random = new Random(1)
const judge = judging()
const open = '{"batch":[{"type":"page","userId":"u"}],"context":{'

function timesOf(piece: Piece): number {
  const bodies = Array.from({ length: count }, () =>
    Buffer.from(filled([piece], { open, close: '}}', most: 30_000, random })),
  )
  let next = 0
  const work = (): void => judge(bodies[next++ % count] ?? Buffer.alloc(0), ofBatch)
  return costRatio(work, rewriteOrdinaryBody, enough)
}

const ofBatch = { name: 'a batch', call: 'batch', hasKey: true, make: () => Buffer.alloc(0) } as const
const pieces = members.filter(({ name }) => /^a fresh key(?: \\)?$/.test(name))
process.stdout.write(JSON.stringify(Object.fromEntries(pieces.map((piece) => [piece.name, timesOf(piece)]))))
process.exit()
