import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type AdminTokens, makeTokens } from '../support/admin.ts'
import { expectNowhere, filesIn, recordsOf, type Said } from '../support/planted.ts'
import { startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { runToEnd, type SluiceProcess, startSluice } from '../support/worker-process.ts'
import { type Scene, setScene } from './scene.ts'

const writeKey = 'planted-write-key-41'
const userId = 'ann@planted-user.example'
const planted = {
  header: 'planted-header-secret-0b5c',
  path: 'planted-path-secret-93d1',
  shared: 'planted-shared-secret-77aa',
  userKey: 'planted-user-key-of-the-log',
  indexToken: 'planted-index-token-5e',
}

/**
 * Opens a scene whose second destination answers with an error. The answer repeats all that the destination
 * received, and its shared secret.
 */
async function openScene(): Promise<{ scene: Scene; tokens: AdminTokens; folder: string }> {
  const receiver = await startReceiver((request, response) => {
    if (request.path === '/fine') response.writeHead(200).end()
    else {
      const { authorization, 'x-signature': signature } = request.headers
      const segment = request.path.split('/').at(-1)
      const said = [request.path, authorization, signature, request.body.toString(), planted.shared, segment]
      response.writeHead(422).end(`not accepted: ${said.join(' ')}`)
    }
  })
  const folder = mkdtempSync(join(tmpdir(), 'sluice-planted-'))
  const tokens = await makeTokens()
  const hookOf = (url: string) => [
    { id: 'main', url, headers: { Authorization: `Bearer ${planted.header}` } },
  ]
  const sharedSecret = planted.shared
  const scene = await setScene({
    catalog: {
      sources: [{ id: 'shop', writeKeys: [writeKey] }],
      destinations: [
        { id: 'fine', sources: ['shop'], sharedSecret, hooks: hookOf(`${receiver.origin}/fine`) },
        { id: 'bad', sources: ['shop'], sharedSecret, hooks: hookOf('${CATALOG_BAD_HOOK}') },
      ],
    },
    variables: {
      CATALOG_BAD_HOOK: `${receiver.origin}/${planted.path}`,
      SLUICE_ATTEMPTS_ANSWERS: 'true',
      SLUICE_ATTEMPTS_USER_KEY: planted.userKey,
      SLUICE_INDEX_FOLDER: folder,
      SLUICE_INDEX_TOKEN: planted.indexToken,
      SLUICE_ADMIN_TOKENS_FILE: tokens.file,
      SLUICE_LOG_LEVEL: 'debug',
    },
  })
  onTestFinished(async () => {
    scene.close()
    tokens.remove()
    await receiver.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  return { scene, tokens, folder }
}

test('no secret, and no user, is in anything that a run writes, says, answers or counts', async () => {
  const { scene, tokens, folder } = await openScene()
  const running: SluiceProcess[] = []
  const start = async (role: string, own: Record<string, string> = {}): Promise<SluiceProcess> => {
    const one = await startSluice({ ...scene.variables, ...own }, { role })
    onTestFinished(() => one.kill())
    running.push(one)
    return one
  }
  await start('worker')
  const gateway = await start('gateway')
  const index = await start('log serve')
  const admin = await start('admin', { SLUICE_INDEX_URL: `http://127.0.0.1:${index.queryPort}` })
  const said: Said[] = []

  const sent = await fetch(`http://127.0.0.1:${gateway.gatewayPort}/v1/track`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${writeKey}:`)}`, 'content-type': 'application/json' },
    body: JSON.stringify({ userId, event: 'Bought', messageId: 'order-4711' }),
  })
  said.push({ where: 'the answer of the gateway', text: await sent.text() })
  await until('it is indexed', async () => (await index.metric('sluice_log_indexed_total')) >= 3)

  const ask = async (path: string, body?: object): Promise<string> => {
    const answer = await fetch(`http://127.0.0.1:${admin.adminPort}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${tokens.admin}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    expect(answer.ok).toBe(true)
    const text = await answer.text()
    said.push({ where: path, text })
    return text
  }
  const life = await ask('/v1/log/messages/order-4711')
  expect(life).toContain('not accepted: [redacted] [redacted] [redacted] ')
  expect(JSON.parse(await ask('/v1/log/search', { user: userId })).records).toHaveLength(3)
  const selection = { of: 'dead-letters', destination: 'bad' }
  await ask('/v1/replays/preview', { selection })
  const { id } = JSON.parse(await ask('/v1/replays', { selection }))
  await until('it is replayed', async () => (await ask(`/v1/replays/${id}`)).includes('"state":"done"'))
  for (const path of ['/v1/destinations', '/v1/log', '/v1/replays', '/v1/audit', '/v1/health'])
    await ask(path)
  await ask('/v1/log/stats', {})

  const commands = [
    ['log', 'search', '--user', userId, '--json'],
    ['log', 'find', 'order-4711', '--no-payload'],
    ['log', 'stats'],
    ['replay', 'list'],
    ['replay', 'show', id],
    ['config'],
  ]
  for (const command of commands) {
    const { code, stdout, stderr } = await runToEnd(command, scene.variables)
    expect([command, code]).toEqual([command, 0])
    said.push({ where: command.join(' '), text: stdout + stderr })
  }
  expect(said.map(({ text }) => text).join()).toContain('| not accepted: [redacted]')

  for (const one of running) {
    said.push({ where: 'metrics', text: await one.metrics() })
    await one.terminate()
    said.push({ where: 'a log', text: JSON.stringify(one.log) + one.stderr })
  }
  const files = filesIn(folder)
  expect(files.length).toBeGreaterThan(0)
  const records = await recordsOf(scene.prefix)
  const written = new Set(['the topic attempts', 'the topic replay-jobs'])
  said.push(...files, ...records.filter(({ where }) => written.has(where)))

  const { read, operate, admin: adminToken } = tokens
  expectNowhere({ ...planted, read, operate, adminToken, writeKey, userId }, said)
})
