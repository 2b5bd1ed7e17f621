import type { Created, Restored, Work } from './phases.ts'

export type Played = {
  created: Created
  resynced: Work
  restored: Restored
  syncCompared: Work
  quiet: Work
  changesCompared: Work
}
