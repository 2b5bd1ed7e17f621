import { closeSync, fsyncSync, openSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { slotMs } from './row.ts'

const pattern = /^log-(\d+)\.sqlite$/

export function slotPath(folder: string, slot: number): string {
  return join(folder, `log-${slot}.sqlite`)
}

/** The slots that have a file, ascending; none where the folder isn't there. */
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

/** The first slot that is kept. */
export function firstKeptSlot(nowMs: number, keptMs: number): number {
  return Math.floor((nowMs - keptMs) / slotMs)
}

export function removeSlot(folder: string, slot: number): void {
  for (const ending of ['', '-wal', '-shm']) rmSync(slotPath(folder, slot) + ending, { force: true })
}

/**
 * Waits until what was committed to slots is on the disk. In `synchronous = NORMAL` SQLite itself does so
 * only when it copies a WAL into its file.
 */
export function syncSlots(folder: string, slots: Iterable<number>): void {
  for (const slot of slots) syncPath(`${slotPath(folder, slot)}-wal`)
  // The names of files that are new.
  syncPath(folder)
}

/** A WAL that is gone was copied into its file, and that was synced. */
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
