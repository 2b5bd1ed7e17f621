import { mkdtempSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { makeUserKey } from '../../../src/commands/make-user-key.ts'
import { createAuthority } from '../../support/certificates.ts'

type Asked = {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly token: string | undefined
  readonly body: string
}

/** Starts an API server that answers each request by `status`, and the files by which it is reached. */
async function startApi(status: number, message: string) {
  const authority = createAuthority('cluster')
  const asked: Asked[] = []
  const server = createServer(authority.issue({ names: ['127.0.0.1'] }), (request, reply) => {
    const { method, url, headers } = request
    void text(request).then((body) => {
      asked.push({ method, url, token: headers.authorization, body })
      reply.writeHead(status).end(JSON.stringify({ kind: 'Status', message }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const folder = mkdtempSync(join(tmpdir(), 'sluice-access-'))
  writeFileSync(join(folder, 'token'), 'a-token\n')
  writeFileSync(join(folder, 'ca.crt'), authority.cert)
  writeFileSync(join(folder, 'namespace'), 'sluice')
  return { asked, folder, api: `https://127.0.0.1:${port}` }
}

test('a Secret with a new key is created in the namespace, by the token of the service account', async () => {
  const { asked, ...place } = await startApi(201, '')
  const keys = new Set<string>()
  for (let count = 0; count < 2; count++) {
    expect(await makeUserKey({ ...place, secret: 'user-key' })).toBe('The Secret user-key has a new key.')
    const { data }: { data: Record<string, string> } = JSON.parse(asked.at(-1)?.body ?? '')
    const key = Buffer.from(data['user-key'] ?? '', 'base64').toString()
    expect(key).toMatch(/^[0-9a-f]{64}$/)
    keys.add(key)
  }
  expect(keys.size).toBe(2)
  expect(asked[0]).toMatchObject({
    method: 'POST',
    url: '/api/v1/namespaces/sluice/secrets',
    token: 'Bearer a-token',
  })
  expect(JSON.parse(asked[0]?.body ?? '')).toMatchObject({ kind: 'Secret', metadata: { name: 'user-key' } })
})

test('a Secret that is there stays, and nothing but the create is asked for', async () => {
  const { asked, ...place } = await startApi(409, 'secrets "user-key" already exists')
  expect(await makeUserKey({ ...place, secret: 'user-key' })).toContain('stays as it is')
  expect(asked.map(({ method }) => method)).toEqual(['POST'])
})

test('without the right, it says which right is missing, and what to set instead', async () => {
  const place = await startApi(403, 'secrets is forbidden')
  await expect(makeUserKey({ ...place, secret: 'user-key' })).rejects.toThrow(
    /\(403 secrets is forbidden\): let the service account create Secrets in sluice, or set deliveryLog\.existingSecret/,
  )
})

test('a server that the authority of the cluster has not signed for gets no token', async () => {
  const { asked, ...place } = await startApi(201, '')
  writeFileSync(join(place.folder, 'ca.crt'), createAuthority('another').cert)
  await expect(makeUserKey({ ...place, secret: 'user-key' })).rejects.toThrow('does not answer')
  expect(asked).toEqual([])
})
