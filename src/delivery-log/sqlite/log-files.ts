import { readdirSync, rmSync } from 'node:fs'
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
