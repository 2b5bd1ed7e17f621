import { partitionOf } from '../../src/message/partitioner.ts'

/** The number of partitions of `audience-changes`. */
export const partitions = 6

let users = 0

/** Returns a user that no other call returns. */
export function newUser(): string {
  return `user-${++users}`
}

/** Returns new users who all belong to the same partition. */
export function newNeighbours(count: number): string[] {
  const neighbours: string[] = []
  while (neighbours.length < count) {
    const user = newUser()
    const [first = user] = neighbours
    if (partitionOf(user, partitions) === partitionOf(first, partitions)) neighbours.push(user)
  }
  return neighbours
}

/** Returns a new user who belongs to the same partition as `userId`. */
export function newNeighbourOf(userId: string): string {
  for (;;) {
    const user = newUser()
    if (partitionOf(user, partitions) === partitionOf(userId, partitions)) return user
  }
}
