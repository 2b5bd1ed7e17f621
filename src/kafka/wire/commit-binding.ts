// The last part of the metadata of a commit: the partition and the offset for which the metadata was written.
//
// Others may write commits too. A script that lowers an offset, or that copies commits, often writes the
// metadata that it has read. That metadata lists settled offsets of another place, so records that nobody has
// delivered would count as settled. With this part, the next owner sees this.
//
// The part is `=@OFFSET.HOME.CHECK`. OFFSET is the committed offset in decimal. HOME is the CRC-32 of group,
// topic and partition in hexadecimal. CHECK is the low half of the CRC-32 of `OFFSET.HOME`. Versions of
// Sluice that don't know the part skip it.

import { crc32 } from 'node:zlib'
import { decodeCommitMetadata, encodeCommitMetadata } from './commit-metadata.ts'
import type { StoredCommit, MovedCommit } from './stored-commit.ts'

/** The partition of a commit, and the group that has the commit. */
export type CommitHome = { readonly groupId: string; readonly topic: string; readonly partition: number }

const begins = '=@'
const part = /=@(\d{1,16})\.([0-9a-f]{8})\.([0-9a-f]{4})$/

/** Adds to the metadata of a commit, which Sluice has just encoded, for which partition and offset it is. */
export function bindMetadata(metadata: string, home: CommitHome, offset: number): string {
  const bound = `${offset}.${hex(crc32(nameOf(home)), 8)}`
  return `${metadata}${begins}${bound}.${checkOf(bound)}`
}

/** Binds metadata that was read. Changes nothing if it is bound already, or if another program wrote it. */
export function bindRead(metadata: string, home: CommitHome, offset: number): string {
  const isOther = metadata.includes(begins) || decodeCommitMetadata(offset, metadata) === undefined
  return isOther ? metadata : bindMetadata(metadata, home, offset)
}

/** Removes what `bindMetadata` has added, so that the metadata can be bound to another group. */
export function unbindMetadata(metadata: string): string {
  const at = metadata.indexOf(begins)
  return at < 0 ? metadata : metadata.slice(0, at)
}

/**
 * Returns the commit as its reader may believe it. If its metadata was written for another offset or
 * partition, or for another group, the result lists nothing as settled, has no final mark and no leader
 * epoch, and says so in `moved`. Its offset stays, because somebody wanted the group to go on there. Its
 * epoch stays too, because a higher epoch only keeps former owners from committing. What holds for the
 * partition at any offset stays if the metadata is of this partition. Earlier versions of Sluice don't bind
 * their metadata, which is believed.
 */
export function believed(stored: StoredCommit, home: CommitHome): StoredCommit {
  const { offset, metadata } = stored
  if (offset < 0 || metadata === null || !metadata.includes(begins)) return stored
  const [, boundOffset = '', boundHome = '', check] = part.exec(metadata) ?? []
  const isOfHome =
    check === checkOf(`${boundOffset}.${boundHome}`) && boundHome === hex(crc32(nameOf(home)), 8)
  if (isOfHome && Number(boundOffset) === offset) return stored
  const { epoch = 0, begunBelow, topicId } = decodeCommitMetadata(offset, metadata) ?? {}
  const mark = {
    isFinal: false,
    epoch,
    ...(isOfHome && begunBelow !== undefined && { begunBelow }),
    ...(isOfHome && topicId !== undefined && { topicId }),
  }
  const moved: MovedCommit = { from: isOfHome ? Number(boundOffset) : -1 }
  return { offset, leaderEpoch: -1, metadata: encodeCommitMetadata(offset, [], mark), moved }
}

/** Describes a moved commit, for a line of the log. `offset` is the committed offset. */
export function describeMoved({ from }: MovedCommit, offset: number): string {
  const what =
    from < 0
      ? `somebody has set the commit of this partition to offset ${offset}, with the metadata of another partition, topic or group`
      : `somebody has moved the commit of this partition from offset ${from} to ${offset}, and has kept its metadata`
  return `${what}: nothing from ${offset} on counts as settled, so all records from there are delivered, some of them again. To move a commit, use kafka-consumer-groups.sh --reset-offsets, which leaves no metadata`
}

function nameOf({ groupId, topic, partition }: CommitHome): string {
  return JSON.stringify([groupId, topic, partition])
}

function checkOf(bound: string): string {
  return hex(crc32(bound) & 0xffff, 4)
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0')
}
