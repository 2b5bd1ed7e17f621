import { lookup } from 'node:dns/promises'
import { within } from '../../async/within.ts'
import type { AdvertisedPlace } from '../../kafka/cluster/with-admin.ts'

/**
 * The time after which a name counts as known, in milliseconds: its server is slow, and others will ask it.
 */
const lookupMs = 1_000

/** Returns those of the places whose names don't exist for this machine, as `host:port`. */
export async function unknownPlaces(places: readonly AdvertisedPlace[]): Promise<readonly string[]> {
  const unknown = await Promise.all(
    places.map(async ({ host, port }) => ((await exists(host)) ? [] : [`${host}:${port}`])),
  )
  return unknown.flat()
}

async function exists(host: string): Promise<boolean> {
  try {
    await within(lookupMs, lookup(host))
    return true
  } catch (error) {
    // Other errors, such as EAI_AGAIN, say nothing about the name.
    return !(error instanceof Error && 'code' in error && error.code === 'ENOTFOUND')
  }
}
