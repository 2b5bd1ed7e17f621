import { closeSync, fsyncSync, openSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { slotMs } from './row.ts'

const pattern = /^log-(\d+)\.sqlite$/

export function slotPath(folder: string, slot: number): string {
  return join(folder, `log-${slot}.sqlite`)
}

/**
 * Returns the slots that have a file, in ascending order. A slot is one hour. Returns an empty list if the
 * folder doesn't exist.
 */
export function slotsIn(folder: string): number[] {
  let names: string[] = []
  try {
    names = readdirSync(folder)
  } catch {
    return []
  }
  return names
    .flatMap((name) => {
      const slot = Number(pattern.exec(name)?.[1])
      return Number.isSafeInteger(slot) ? [slot] : []
    })
    .toSorted((a, b) => a - b)
}

/** Returns the oldest slot within the retention. A slot is one hour. */
export function firstKeptSlot(nowMs: number, keptMs: number): number {
  return Math.floor((nowMs - keptMs) / slotMs)
}

export function removeSlot(folder: string, slot: number): void {
  for (const ending of ['', '-wal', '-shm']) rmSync(slotPath(folder, slot) + ending, { force: true })
}

/**
 * Waits until the rows that were committed to slots are on the disk. With `synchronous = NORMAL`, SQLite
 * itself syncs only when it copies a WAL file into the database file.
 */
export function syncSlots(folder: string, slots: Iterable<number>): void {
  for (const slot of slots) syncPath(`${slotPath(folder, slot)}-wal`)
  // Syncs the folder, so that the names of new files are on the disk too.
  syncPath(folder)
}

/**
 * Syncs a file, unless it is gone. SQLite removes a WAL file after it has copied the WAL's content into the
 * database file and has synced that file.
 */
function syncPath(path: string): void {
  let file: number
  try {
    file = openSync(path, 'r')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return
    throw error
  }
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
