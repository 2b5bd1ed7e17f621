import { registerHooks } from 'node:module'
import { adminOpenApi } from '../src/admin/openapi.ts'

/**
 * Writes the types of `clients/admin` from the OpenAPI document of the admin API. openapi-typescript needs the
 * compiler's API of TypeScript 5. Later versions don't have it, so TypeScript 5 is installed under another
 * name for it.
 */
export async function adminClientTypes(): Promise<string> {
  const hooks = registerHooks({
    resolve: (specifier, context, next) =>
      next(specifier === 'typescript' ? 'typescript-5' : specifier, context),
  })
  const { astToString, default: typesOf } = await import('openapi-typescript')
  hooks.deregister()
  const document: Parameters<typeof typesOf>[0] = JSON.stringify(adminOpenApi())
  const types = await typesOf(document, {
    defaultNonNullable: false,
    rootTypes: true,
    rootTypesNoSchemaPrefix: true,
    silent: true,
  })
  return `// Written by \`npm run generate\` from schemas/admin-openapi.json.\n\n${astToString(types)}`
}
