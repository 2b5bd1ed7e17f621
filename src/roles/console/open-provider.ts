import { readFile } from 'node:fs/promises'
import { signInPaths } from '../../admin/console/sign-in-pages.ts'
import { Provider } from '../../admin/provider/provider.ts'
import {
  type ProviderRight,
  providerRightForm,
  readProviderRight,
} from '../../admin/provider/provider-rights.ts'
import type { Config } from '../../config/schema.ts'
import { StartError } from '../start/start-error.ts'

/** The OpenID provider of the settings, and what people may do by the values of its claim. */
export type OpenedProvider = { readonly provider: Provider; readonly rights: readonly ProviderRight[] }

/**
 * Opens the OpenID provider. Nothing is asked of it before somebody signs in, so `sluice admin` starts
 * without it. Returns `undefined` if none is set. Throws if the settings don't go together.
 */
export function openProvider({ admin }: Config): OpenedProvider | undefined {
  const { oidcIssuer, oidcClientId, oidcClientSecretFile: file, oidcScopes, publicUrl } = admin
  if (oidcIssuer === undefined) return undefined
  if (oidcClientId === undefined) throw new StartError(needs('admin.oidcClientId'))
  if (publicUrl === undefined) throw new StartError(needs('admin.publicUrl'))
  const rights = admin.oidcRights.map(rightIn)
  if (rights.length === 0) throw new StartError(needs('admin.oidcRights, or nobody may do anything'))
  const provider = new Provider({
    issuer: oidcIssuer,
    clientId: oidcClientId,
    secret: async () => (file === undefined ? undefined : (await readFile(file, 'utf8')).trim()),
    scopes: oidcScopes,
    redirectUri: `${publicUrl.replace(/\/+$/, '')}/console/${signInPaths.callback}`,
    claim: admin.oidcClaim,
    nameClaim: admin.oidcNameClaim,
  })
  return { provider, rights }
}

function rightIn(text: string): ProviderRight {
  const right = readProviderRight(text)
  if (right === undefined)
    throw new StartError(`admin.oidcRights has ${JSON.stringify(text)}, which is not ${providerRightForm}.`)
  return right
}

function needs(what: string): string {
  return `admin.oidcIssuer is set, so set ${what} too: see docs/console.md.`
}
