import { describe, expect, test } from 'vitest'
import { type Destination, destinationOf, failed, stage, type Stage, taken } from './stage.ts'

/** Tests of units that stand still because the outcomes of their deliveries can't be written. */

const sick = { partition: 2, userId: 'sick' }
const well = { partition: 3, userId: 'well' }

function catalogOf(destination: Destination) {
  return {
    sources: new Map([['space', { enabled: true, kind: 'audiences' as const }]]),
    destinations: new Map([[destination.id, destination]]),
    destinationsBySource: new Map([['space', [destination]]]),
  }
}

function full(): { pressures: boolean[]; scene: Stage } {
  const pressures: boolean[] = []
  const scene = stage({
    buffer: { records: 10, bytes: 1_000_000 },
    onPressure: (isFull) => pressures.push(isFull),
    outlet: { produce: () => new Promise<'acknowledged'>(() => {}) },
  })
  return { pressures, scene }
}

function fill(all: Stage, where: typeof sick, count: number): void {
  for (let index = 0; index < count; index++)
    all.identify(`${where.userId} ${index}`, { ...where, userId: `${where.userId} ${index}` })
}

describe('while a unit stands still', () => {
  test('nothing of it begins, whether it waited before or comes then; others go on; all of it goes on after', async () => {
    const all = stage({ maxInFlight: 1 })
    const { pipeline } = all
    all.identify('1', well)
    const waited = all.identify('2', sick)
    const next = all.identify('3', { ...well, userId: 'other' })
    pipeline.setUnitStopped(sick.partition, true)
    const came = all.identify('4', { ...sick, userId: 'other sick' })
    await all.settle()
    expect(all.bodies()).toEqual(['1'])
    await all.answer(taken)
    await all.answer(taken)
    expect([next.settled, waited.settled, came.settled]).toEqual([1, 0, 0])
    expect(all.bodies()).toEqual([])
    expect([pipeline.queued, pipeline.held.records]).toEqual([2, 2])

    pipeline.setUnitStopped(sick.partition, false)
    await all.answer(taken, '2')
    await all.answer(taken, '4')
    expect([waited.settled, came.settled]).toEqual([1, 1])
    expect([pipeline.queued, pipeline.held.records]).toEqual([0, 0])
  })

  test('a limit that the catalog gets meanwhile holds for what waits', async () => {
    const before = catalogOf(destinationOf('crm'))
    const after = catalogOf(destinationOf('crm', { rateLimit: { perSecond: 0.01, burst: 2 } }))
    let catalog = before
    const all = stage({ catalog: () => catalog })
    all.pipeline.setUnitStopped(sick.partition, true)
    fill(all, sick, 5)
    catalog = after
    all.pipeline.setUnitStopped(sick.partition, false)
    await all.settle()
    expect(all.bodies()).toEqual(['sick 0', 'sick 1'])
    all.pipeline.stop()
  })

  test('what is under way comes to its end, and its record waits for what is to be written', async () => {
    const writing = Promise.withResolvers<'acknowledged'>()
    const all = stage({ outlet: { produce: () => writing.promise } })
    const { pipeline, told } = all
    const record = all.identify('1', sick)
    pipeline.setUnitStopped(sick.partition, true)
    await all.answer(failed)
    expect(told).toEqual(['parked crm 1: failed'])
    expect(record.settled).toBe(0)
    writing.resolve('acknowledged')
    await all.settle()
    expect(record.settled).toBe(1)
  })

  test('what belongs to another owner by then is given back, and so is all of it at the end', async () => {
    const all = stage()
    const { pipeline } = all
    pipeline.setUnitStopped(sick.partition, true)
    const lost = all.identify('1', sick)
    const kept = all.identify('2', { ...sick, userId: 'other' })
    lost.isAbandoned = true
    pipeline.letGoAbandoned()
    expect([lost.givenBack, kept.givenBack]).toEqual([1, 0])
    await pipeline.drain()
    expect(kept.givenBack).toBe(1)
  })

  test('a newer value takes the place of the one that stands still', async () => {
    const all = stage()
    const { pipeline, told } = all
    pipeline.setUnitStopped(sick.partition, true)
    all.identify('1', sick)
    all.identify('2', sick)
    pipeline.setUnitStopped(sick.partition, false)
    await all.settle()
    expect(all.bodies()).toEqual(['2'])
    expect(told).toEqual(['superseded crm 1'])
  })
})

describe('the buffer', () => {
  test('has room for other units, though one that stands still held half of it', () => {
    const { pressures, scene } = full()
    fill(scene, sick, 5)
    fill(scene, well, 5)
    expect(pressures).toEqual([true])
    scene.pipeline.setUnitStopped(sick.partition, true)
    expect(pressures).toEqual([true, false])
    fill(scene, well, 4)
    expect(pressures).toEqual([true, false])
    fill(scene, well, 1)
    expect(pressures).toEqual([true, false, true])
  })

  test('never holds more than half of it besides: units that stand still fill it in the end', () => {
    const { pressures, scene } = full()
    scene.pipeline.setUnitStopped(sick.partition, true)
    scene.pipeline.setUnitStopped(well.partition, true)
    fill(scene, sick, 7)
    fill(scene, well, 7)
    expect(pressures).toEqual([])
    fill(scene, well, 1)
    expect(pressures).toEqual([true])
  })

  test('counts what stood still again when it goes on', () => {
    const { pressures, scene } = full()
    scene.pipeline.setUnitStopped(sick.partition, true)
    fill(scene, sick, 5)
    fill(scene, well, 5)
    expect(pressures).toEqual([])
    scene.pipeline.setUnitStopped(sick.partition, false)
    expect(pressures).toEqual([true])
  })

  test('is not filled by records that only wait for the note that a destination missed a value', async () => {
    const pressures: boolean[] = []
    const marked = Promise.withResolvers<void>()
    const scene = stage({
      buffer: { records: 10, bytes: 1_000_000 },
      marked,
      onPressure: (isFull) => pressures.push(isFull),
      destinations: [destinationOf('crm', { state: 'off' })],
    })
    const records = Array.from({ length: 9 }, (_, index) =>
      scene.identify(`${index}`, { ...well, userId: `${index}` }),
    )
    await scene.settle()
    expect(scene.pipeline.held.records).toBe(9)
    fill(scene, sick, 9)
    await scene.settle()
    expect(pressures).toEqual([])
    expect(records.some(({ settled }) => settled > 0)).toBe(false)
    marked.resolve()
    await scene.settle()
    expect(records.every(({ settled }) => settled === 1)).toBe(true)
    expect(scene.pipeline.held).toEqual({ records: 0, bytes: 0 })
  })
})
