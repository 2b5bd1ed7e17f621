import { expect, test } from 'vitest'
import { allObservers } from '../../../src/pipeline/all-observers.ts'
import type { PipelineObserver } from '../../../src/pipeline/pipeline-ports.ts'

const names = [
  'firstTried',
  'attempted',
  'batched',
  'delivered',
  'omitted',
  'parked',
  'deadLettered',
  'dropped',
  'notRouted',
  'filtered',
  'unknownSource',
  'repeated',
  'rulesTooLong',
  'askedForToken',
  'failed',
] as const satisfies readonly (keyof PipelineObserver)[]

/** An observer with all methods that notes each call, and uses `this` as an observer of a class does. */
class Noting {
  readonly calls: unknown[][]
  readonly name: string

  constructor(name: string, calls: unknown[][]) {
    this.name = name
    this.calls = calls
    for (const method of names) Object.assign(this, { [method]: this.#noting(method) })
  }

  #noting(method: string) {
    return function note(this: Noting, ...args: unknown[]): void {
      this.calls.push([this.name, method, ...args])
    }
  }
}

function observer(name: string, calls: unknown[][]): PipelineObserver {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its methods are made by their names
  return new Noting(name, calls) as unknown as PipelineObserver
}

test.each(names)(
  '%s goes to all observers that have it, in their order, with all that it was given',
  (name) => {
    const calls: unknown[][] = []
    const without = { ...observer('without', calls), [name]: undefined }
    const all = allObservers(observer('first', calls), [undefined, without, observer('last', calls)])
    Reflect.apply(all[name], all, [1, 2, 3, 4])
    expect(calls).toEqual([
      ['first', name, 1, 2, 3, 4],
      ['last', name, 1, 2, 3, 4],
    ])
  },
)

test('a single observer with a method is called itself', () => {
  const calls: unknown[][] = []
  const all = allObservers(observer('first', calls), [{}])
  for (const name of names) Reflect.apply(all[name], all, [name])
  expect(calls).toEqual(names.map((name) => ['first', name, name]))
})
