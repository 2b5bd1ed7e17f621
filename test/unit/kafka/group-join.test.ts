import { expect, test } from 'vitest'
import { joinOf, mustJoin, watchJoins } from '../../../src/kafka/group-join.ts'

/** As kafkajs' group: a join is answered, which gives a name and a generation, and only then its assignment comes, or never. */
class Group {
  readonly cluster = {}
  memberId: string | null = null
  generationId = -1
  #assignment = Promise.withResolvers<void>()

  joinAndSync(): Promise<void> {
    this.#assignment = Promise.withResolvers<void>()
    return this.#assignment.promise
  }

  answer(memberId: string, generationId: number): void {
    this.memberId = memberId
    this.generationId = generationId
  }

  assign(): void {
    this.#assignment.resolve()
  }

  lose(): void {
    this.#assignment.reject(new Error('the connection was closed'))
  }

  get join() {
    return joinOf(this.cluster)
  }
}
watchJoins(Group.prototype)

async function joinedGroup(): Promise<Group> {
  const group = new Group()
  const joining = group.joinAndSync()
  group.answer('a', 1)
  group.assign()
  await joining
  return group
}

test('one that joins for the first time is nothing to the group yet, though the join is answered', async () => {
  const group = new Group()
  expect(group.join).toBeUndefined()
  const joining = group.joinAndSync()
  expect(group.join).toEqual(expect.objectContaining({ membership: undefined }))
  group.answer('a', 1)
  expect(group.join?.membership).toBeUndefined()
  group.assign()
  await joining
  expect(group.join).toBeUndefined()
})

test('one that joins again is what its last assignment was for', async () => {
  const group = await joinedGroup()
  const joining = group.joinAndSync()
  group.answer('a', 2)
  expect(group.join?.membership).toEqual({ memberId: 'a', generationId: 1 })
  group.assign()
  await joining
  void group.joinAndSync()
  expect(group.join?.membership).toEqual({ memberId: 'a', generationId: 2 })
})

test('also after a join whose assignment was lost', async () => {
  const group = await joinedGroup()
  const joining = group.joinAndSync()
  group.answer('a', 2)
  group.lose()
  await expect(joining).rejects.toThrow('the connection was closed')
  expect(group.join).toBeUndefined()
  void group.joinAndSync()
  expect(group.join?.membership).toEqual({ memberId: 'a', generationId: 1 })
})

test('one that the group does not know any more is nothing to it', async () => {
  const group = await joinedGroup()
  group.memberId = null
  void group.joinAndSync()
  expect(group.join).toEqual(expect.objectContaining({ membership: undefined }))
})

test('of two joins at a time the first to end gives what is, and it joins until the other has ended', async () => {
  const group = await joinedGroup()
  const first = group.joinAndSync()
  group.answer('a', 2)
  group.assign()
  const second = group.joinAndSync()
  await first
  expect(group.join?.membership).toEqual({ memberId: 'a', generationId: 2 })
  group.assign()
  await second
  expect(group.join).toBeUndefined()
})

test('one whose last join has failed must join, unless it does so', async () => {
  const group = await joinedGroup()
  expect(mustJoin(group)).toBe(false)
  const failing = group.joinAndSync()
  group.lose()
  await expect(failing).rejects.toThrow('the connection was closed')
  expect(mustJoin(group)).toBe(true)
  const joining = group.joinAndSync()
  expect(mustJoin(group)).toBe(false)
  group.answer('b', 3)
  group.assign()
  await joining
  expect(mustJoin(group)).toBe(false)
})
