import type { FloodPlan } from './flood-process.ts'

/** The write key of each flood, its place, and the status with which the gateway must refuse the flood. */
export const floods = {
  'unknown key': { keyIn: 'head', writeKey: 'nobody', status: 401 },
  'unknown key in the body': { keyIn: 'body', writeKey: 'nobody', status: 401 },
  'over its rate': { keyIn: 'head', writeKey: 'limited-write-key', status: 429 },
  'over its rate, key in the body': { keyIn: 'body', writeKey: 'limited-write-key', status: 429 },
} as const satisfies Record<string, Pick<FloodPlan, 'keyIn' | 'writeKey'> & { status: number }>

export type FloodName = keyof typeof floods
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of a literal
export const floodNames = Object.keys(floods) as FloodName[]
export type SideName = FloodName | 'no flood'
