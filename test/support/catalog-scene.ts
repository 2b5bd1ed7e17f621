import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newKeyLine } from '../../src/catalog-log/keys.ts'
import { type Scene, setScene } from '../e2e/scene.ts'

/** A scene whose catalog is in its topic. `folder` is empty but for the keys, and goes with the scene. */
export type CatalogScene = Scene & { readonly folder: string }

/** Sets a scene whose catalog is in its topic, with new keys. */
export async function setCatalogScene({
  variables = {},
  ...options
}: Partial<Parameters<typeof setScene>[0]> = {}): Promise<CatalogScene> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-catalog-scene-'))
  const keys = join(folder, 'keys')
  writeFileSync(keys, newKeyLine())
  const scene = await setScene({
    catalog: { sources: [], destinations: [] },
    ...options,
    variables: { SLUICE_CATALOG_SOURCE: 'topic', SLUICE_CATALOG_KEYS_FILE: keys, ...variables },
  })
  const close = (): void => {
    scene.close()
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  }
  return { ...scene, folder, close }
}
