import { basename, dirname } from 'node:path'
import type { Catalog } from '../catalog.ts'
import { CatalogFolder } from './folder.ts'
import { readCatalogData } from './reader.ts'
import { type CatalogPlace, takeSnapshot } from './snapshot.ts'

/**
 * Reads as much of a faulty file as can be shown: a destination with a fault has its id, its state, and what
 * else decides about its messages. Returns `undefined` if that can't be read.
 */
export async function readShownCatalog(place: CatalogPlace): Promise<Catalog | undefined> {
  const snapshot = await takeSnapshot(place)
  if (!snapshot.ok || snapshot.files !== undefined) return undefined
  const { text, variables } = snapshot
  const file = { name: basename(place.path), text }
  const options = { path: dirname(place.path), variables, allowAddresses: undefined }
  const folder = new CatalogFolder({ keepsStates: true })
  const read = await folder.read([file], { ...options, readData: readCatalogData })
  return read.ok ? read.catalog : undefined
}
