import { describe, expect, test } from 'vitest'
import { problemCodes } from '../../../../src/gateway/calls/answer.ts'
import { apiRoutes, browserRoutes } from '../../../../src/gateway/http/api-routes.ts'
import { docsPage, docsPolicy } from '../../../../src/gateway/http/docs-page.ts'
import { openApiDocument } from '../../../../src/gateway/http/gateway-openapi.ts'

type Operation = { operationId: string; responses: Record<string, { description: string }> }
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the test reads only these parts
const document = JSON.parse(JSON.stringify(openApiDocument())) as {
  openapi: string
  paths: Record<string, { post?: Operation; get?: Operation }>
  components: { schemas: Record<string, unknown> }
}
const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods))

describe('the OpenAPI document', () => {
  test('has every path of every route, and no other', () => {
    expect(document.openapi).toBe('3.1.0')
    const paths = [
      ...apiRoutes.flatMap((route) => route.paths),
      ...Object.values(browserRoutes).map(({ path }) => path),
    ]
    expect(Object.keys(document.paths).toSorted()).toEqual(paths.toSorted())
  })

  test('names operations once each', () => {
    const ids = operations.map(({ operationId }) => operationId)
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('says of each operation how it may end, with codes that there are', () => {
    for (const { responses } of operations) {
      expect(Object.keys(responses)).toContain('200')
      const codes = Object.entries(responses)
        .filter(([status]) => status !== '200')
        .flatMap(([, { description }]) => description.split(', '))
      expect(problemCodes).toEqual(expect.arrayContaining(codes))
    }
  })

  test('refers to nothing that it does not have', () => {
    const references = JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)
    for (const [, name = ''] of references) expect(document.components.schemas).toHaveProperty(name)
  })
})

describe('the page about the API', () => {
  test('loads nothing from elsewhere', () => {
    expect(docsPage).not.toMatch(/https?:\/\//)
    expect(docsPolicy).toContain("default-src 'none'")
    expect(docsPolicy).not.toContain('unsafe')
  })
})
