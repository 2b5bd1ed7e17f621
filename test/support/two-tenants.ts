import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newKeyLine } from '../../src/catalog-log/keys.ts'
import { type Scene, setScene } from '../e2e/scene.ts'
import { type AdminTokens, makeTokens } from './admin.ts'
import { letterOf, writeLetters } from './dead-letters.ts'
import { produce } from './kafka.ts'
import { blockOf, stateOf } from './log-blocks.ts'
import { writePause } from './pauses.ts'
import { until } from './until.ts'
import { runToEnd, type SluiceProcess, startSluice } from './worker-process.ts'

export type Answer = {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly json: Record<string, unknown>
}

export type Asked = {
  readonly token?: string | undefined
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** An installation of two customers, whose objects are labelled, with the admin API and the delivery log. */
export type Tenants = {
  readonly scene: Scene
  readonly tokens: AdminTokens
  readonly admin: SluiceProcess
  /** Asks the API, with the token for everything if there is no other. */
  readonly call: (method: string, path: string, asked?: Asked, at?: SluiceProcess) => Promise<Answer>
  /** Makes a token, and returns its text. */
  readonly token: (order: object, by?: string) => Promise<string>
  close(): Promise<void>
}

const hook = (tenant: string) => ({ id: 'main', url: `https://${tenant}.example/hook` })

function destination(id: string, tenant: string, sources: readonly string[]): object {
  return { id, name: `${tenant} Ltd`, labels: { tenant }, sources, hooks: [hook(tenant)] }
}

const catalogOfTwo = {
  sources: [
    { id: 'shop', name: 'Of all' },
    { id: 'acme-shop', labels: { tenant: 'acme' } },
    { id: 'globex-shop', writeKeys: ['globex-key'], labels: { tenant: 'globex' } },
  ],
  destinations: [
    destination('acme.crm', 'acme', ['shop', 'acme-shop']),
    destination('acme.erp', 'acme', ['acme-shop']),
    destination('globex.crm', 'globex', ['shop', 'globex-shop']),
    destination('globex.erp', 'globex', ['globex-shop']),
    { id: 'ours', sources: ['shop'], hooks: [hook('ours')] },
  ],
}

export async function openTenants(): Promise<Tenants> {
  const tokens = await makeTokens()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-tenants-'))
  writeFileSync(join(folder, 'keys'), newKeyLine())
  const scene = await setScene({
    catalog: catalogOfTwo,
    variables: {
      SLUICE_ADMIN_TOKENS_FILE: tokens.file,
      SLUICE_CATALOG_SOURCE: 'topic',
      SLUICE_CATALOG_KEYS_FILE: join(folder, 'keys'),
      SLUICE_INDEX_FOLDER: join(folder, 'log'),
      SLUICE_NOTICES_AUTO_PAUSE: '120h',
      SLUICE_ATTEMPTS_USER_KEY: 'a key of sixteen or more',
    },
  })
  const imported = await runToEnd(['catalog', 'import', scene.catalog.path], scene.variables)
  if (imported.code !== 0) throw new Error(imported.stderr)
  await writeHistory(scene)
  const [admin, index] = await Promise.all([
    startSluice(scene.variables, { role: 'admin' }),
    startSluice(scene.variables, { role: 'log serve' }),
  ])
  await until('all is indexed', async () => (await index.metric('sluice_log_indexed_total')) === 6)

  async function call(
    method: string,
    path: string,
    { token = tokens.admin, body, headers = {} }: Asked = {},
    at = admin,
  ): Promise<Answer> {
    const response = await fetch(`http://127.0.0.1:${at.adminPort}${path}`, {
      method,
      headers: {
        ...(token !== '' && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: text === '' ? {} : JSON.parse(text),
    }
  }

  return {
    scene,
    tokens,
    admin,
    call,
    async token(order, by = tokens.admin) {
      const { status, json, text } = await call('POST', '/v1/tokens', { token: by, body: order })
      if (status !== 201) throw new Error(text)
      return String(json['token'])
    },
    async close() {
      await Promise.all([admin.kill(), index.kill()])
      scene.close()
      tokens.remove()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Writes what has become of messages: some of each customer, and one of both. */
async function writeHistory({ prefix }: Scene): Promise<void> {
  const ids = ['acme.crm', 'globex.crm']
  const letters = ids.flatMap((destinationId) =>
    ['a', 'b'].map((one) =>
      letterOf({ destinationId, messageId: `${destinationId}-${one}`, atMs: Date.now() }, prefix),
    ),
  )
  await writeLetters(`${prefix}dead-letters`, letters)
  const states = ids.flatMap((id) => [
    stateOf({ destination: id, messageId: 'of-both', hook: 'main', source: 'shop' }),
    stateOf({ destination: id, messageId: `${id}-only`, error: `${id} failed`, verdict: 2, status: 503 }),
    stateOf({ destination: id, messageId: `${id}-late` }),
  ])
  for (const id of ['acme.erp', 'globex.erp']) await writePause(id, { prefix })
  await produce(`${prefix}attempts`, [{ key: '0', value: blockOf(states), partition: 0 }])
}

/** A connection that stays open, over which requests are sent one after the other. */
export class OpenConnection {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })
  readonly #port: number

  constructor(port: number) {
    this.#port = port
  }

  /** Resolves with the status, and whether the connection was open before. */
  send(method: string, path: string, token: string, body?: unknown): Promise<[status: number, boolean]> {
    const { promise, resolve, reject } = Promise.withResolvers<[number, boolean]>()
    const headers = {
      authorization: `Bearer ${token}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    }
    const sent = httpRequest({
      port: this.#port,
      host: '127.0.0.1',
      method,
      path,
      headers,
      agent: this.#agent,
    })
    sent.on('error', reject)
    sent.on('response', (response) => {
      response.resume()
      response.on('end', () => resolve([response.statusCode ?? 0, sent.reusedSocket]))
    })
    sent.end(body === undefined ? undefined : JSON.stringify(body))
    return promise
  }

  close(): void {
    this.#agent.destroy()
  }
}
