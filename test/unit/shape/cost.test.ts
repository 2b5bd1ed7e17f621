/* oxlint-disable unicorn/no-thenable -- the directive @if has this key; no function, so no await calls it */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { MessageView } from '../../../src/conditions/message-view.ts'
import { mappingFaults } from '../../../src/shape/faults.ts'
import { mappingLimits } from '../../../src/shape/limits.ts'
import { Shaper } from '../../../src/shape/shaper.ts'
import { costRatio, leastCpuMs } from '../../support/cost.ts'
import { rewriteOrdinaryBody } from '../../support/ordinary-body.ts'

function viewOf(message: object): readonly [view: MessageView, body: Buffer] {
  const body = Buffer.from(JSON.stringify(message))
  const view = new MessageView(body)
  // The message is read once, and not by the mapping that is measured.
  void view.value
  return [view, body]
}

test('a text that a replacement makes too long is not made to its end', () => {
  const replace = { pattern: 'a', replacement: 'bbbbbbbbbb', pattern2: 'b', replacement2: 'cccccccccc' }
  const shaper = new Shaper({ body: { '@replace': { ...replace, value: { '@path': '$.properties.text' } } } })
  const message = viewOf({ properties: { text: 'a'.repeat(300_000) } })
  expect(shaper.of(...message)).toMatchObject({ detail: expect.stringContaining('steps') })
  // To its end, it has 30 million characters, and costs as much as hundreds of ordinary bodies.
  const mostBodies = 40
  expect(costRatio(() => shaper.of(...message), rewriteOrdinaryBody, mostBodies)).toBeLessThan(mostBodies)
})

test('a path that names a long value very often is made only until it is too long', () => {
  const shaper = new Shaper({ path: `/${'{{a}}'.repeat(390)}` })
  const message = viewOf({ a: 'я'.repeat(200) })
  expect(shaper.of(...message)).toMatchObject({ detail: expect.stringMatching(/^path gets a value/) })
  // To its end, it has half a million characters, and a hundred of it cost as much as tens of ordinary bodies.
  const mostBodies = 5
  const makeOften = (): void => {
    for (let times = 0; times < 100; times++) shaper.of(...message)
  }
  expect(costRatio(makeOften, rewriteOrdinaryBody, mostBodies)).toBeLessThan(mostBodies)
})

/** Random mappings of all directives, deep and wide, on messages that are as large as they may be. */
const leaf = fc.oneof(
  fc
    .constantFrom('$.', '$.properties', '$.properties.a', '$.properties.a[0]', '$.no')
    .map((one) => ({ '@path': one })),
  fc
    .constantFrom('{{properties.b}}', '{{properties.b}}{{properties.b}}{{properties.a}}', 'x')
    .map((one) => ({ '@template': one })),
  fc.constantFrom<unknown>(1, 'x', null, true),
)
const { body: anyMapping } = fc.letrec<{ body: unknown }>((tie) => ({
  body: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc.array(tie('body'), { maxLength: 6 }),
    fc.dictionary(fc.constantFrom('a', 'b', '__proto__', '0'), tie('body'), { maxKeys: 4 }),
    fc.record({ '@json': fc.record({ mode: fc.constantFrom('encode', 'decode'), value: tie('body') }) }),
    fc.record({
      '@merge': fc.record({
        direction: fc.constantFrom('left', 'right'),
        objects: fc.array(tie('body'), { maxLength: 5 }),
      }),
    }),
    fc.record({
      '@flatten': fc.record({ separator: fc.constantFrom('.', 'xxxxxxxxxx'), value: tie('body') }),
    }),
    fc.record({
      '@replace': fc.record({
        pattern: fc.constantFrom('a', 'ab', '"'),
        replacement: fc.constantFrom('aaaaaaaaaa', '""""""""""'),
        value: tie('body'),
      }),
    }),
    fc.record({ '@case': fc.record({ operator: fc.constantFrom('lower', 'upper'), value: tie('body') }) }),
    fc
      .tuple(fc.constantFrom('$.properties.a', '$.', ''), tie('body'))
      .map(([at, item]) => ({ '@arrayPath': [at, { i: item }] })),
    fc.record({ '@excludeWhenNull': tie('body') }),
    fc.record({ '@if': fc.record({ exists: tie('body'), then: tie('body') }) }),
  ),
}))

/**
 * What a mapping may cost for one message, in milliseconds. It is allowed a few million steps. Without a bound,
 * these grow a hundredfold with each level.
 */
const mostMs = 3_000

test('no mapping that is allowed costs more than its bound, and each makes canonical bytes or says why not', () => {
  const [view, body] = viewOf({
    type: 'track',
    properties: {
      a: Array.from({ length: 3_000 }, (_, at) => ({ x: at, y: ['a', null] })),
      b: 'ab"'.repeat(30_000),
    },
  })
  let applied = 0
  fc.assert(
    fc.property(anyMapping, (mapping) => {
      if (mappingFaults({ body: mapping }).length > 0) return
      applied++
      const shaper = new Shaper({ body: mapping })
      const results: ReturnType<Shaper['of']>[] = []
      const costMs = leastCpuMs(mostMs, () => results.push(shaper.of(view, body)))
      expect(costMs).toBeLessThan(mostMs)
      const [result] = results
      if (result?.ok !== true) return
      const text = result.shaped.body.toString()
      expect(result.shaped.body.length).toBeLessThanOrEqual(mappingLimits.bodyBytes)
      expect(JSON.stringify(JSON.parse(text))).toBe(text)
    }),
    { numRuns: 300 },
  )
  expect(applied).toBeGreaterThan(50)
})
