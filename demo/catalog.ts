import { writeFile } from 'node:fs/promises'
import { stringify } from 'yaml'
import { createAdminClient } from '../clients/admin/client.js'
import type { Customers } from './customers.ts'
import { destinations, sourceIds, spaceId, writeKeyOf } from './script.ts'

/**
 * Writes the catalog file. It lists the demo's sources, and each customer as a destination with its URL, its
 * secret and the ids of its sources.
 */
export async function writeCatalog(path: string, customers: Customers): Promise<void> {
  const catalog = {
    sources: [
      ...sourceIds.map((id) => ({ id, writeKeys: [writeKeyOf(id)] })),
      { id: spaceId, kind: 'audiences' },
    ],
    destinations: destinations.map(({ id, sources, isPausedAtFirst }) => {
      const customer = customers.all.get(id)
      return {
        id,
        state: isPausedAtFirst ? 'paused' : 'on',
        sources,
        ...(customer?.secret !== undefined && { sharedSecret: customer.secret }),
        hooks: customer?.hooks,
      }
    }),
  }
  await writeFile(path, stringify(catalog, { aliasDuplicateObjects: false }))
}

/** Where the admin API is, and the token for it. */
export type Admin = { readonly url: string; readonly token: string }

/**
 * Sets a paused destination to `on` by the admin API, as a console would: reads it, and changes it only if
 * nobody else has since. Resolves to the number of the change.
 */
export async function switchOn({ url, token }: Admin, destination: string): Promise<number> {
  const admin = createAdminClient({ baseUrl: url, token })
  const path = { destination }
  const { etag } = await admin.get('/v1/destinations/{destination}', { path })
  const { data } = await admin.patch('/v1/destinations/{destination}', {
    path,
    body: { state: 'on' },
    ifMatch: etag ?? '',
  })
  return data.revision
}
