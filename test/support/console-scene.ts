import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createToken } from '../../src/admin/tokens.ts'
import { newKeyLine } from '../../src/catalog-log/keys.ts'
import { setScene } from '../e2e/scene.ts'
import { type LogLine, startSluice } from './worker-process.ts'

/** A Sluice with all roles in one process, whose catalog is in its topic and has one source, `app`. */
export type ConsoleScene = {
  /** The origin of the admin API, and a token with all rights. */
  readonly origin: string
  readonly token: string
  readonly prefix: string
  wholeLog(): Promise<readonly LogLine[]>
  /** Makes a link that signs in to the console, once. */
  link(): Promise<string>
  /** Calls the API with the token. Throws if it is refused. */
  call(method: string, path: string, body?: unknown): Promise<Record<string, unknown>>
  /** Sends a track call to the gateway. */
  track(message: object): Promise<void>
  close(): Promise<void>
}

const writeKey = 'wk_of_the_console'
/** What the log says if a browser has refused a part of the console. */
export const refusedPart = 'a browser has refused a part of the console, which its policy forbids'

/** `own`: more environment variables. Without them, what fails is tried again after a second. */
export async function openConsoleScene(own: Record<string, string> = {}): Promise<ConsoleScene> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-console-'))
  const { token, line } = createToken('developer', 'admin')
  writeFileSync(join(folder, 'keys'), newKeyLine())
  writeFileSync(join(folder, 'tokens'), line)
  const scene = await setScene({
    catalog: { sources: [], destinations: [] },
    variables: {
      SLUICE_ADMIN_TOKENS_FILE: join(folder, 'tokens'),
      SLUICE_ATTEMPTS_ANSWERS: 'true',
      SLUICE_CATALOG_SOURCE: 'topic',
      SLUICE_CATALOG_KEYS_FILE: join(folder, 'keys'),
      SLUICE_INDEX_FOLDER: join(folder, 'log'),
      SLUICE_STATE_FOLDER: join(folder, 'state'),
      SLUICE_RETRY_LADDER: '1s',
      SLUICE_RETRY_THEN: '1s',
      ...own,
    },
  })
  const sluice = await startSluice(scene.variables, { role: 'up', readyMs: 90_000 })
  const origin = `http://127.0.0.1:${sluice.adminPort}`

  async function call(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
    const response = await fetch(`${origin}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(method === 'PUT' && { 'if-none-match': '*' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return text === '' ? {} : JSON.parse(text)
  }

  await call('PUT', '/v1/sources/app', { id: 'app', writeKeys: [writeKey] })
  return {
    origin,
    token,
    prefix: scene.prefix,
    wholeLog: () => sluice.wholeLog(),
    call,
    link: async () => `${origin}${String((await call('POST', '/v1/session/codes'))['path'])}`,
    async track(message) {
      const response = await fetch(`http://127.0.0.1:${sluice.gatewayPort}/v1/track`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa(`${writeKey}:`)}` },
        body: JSON.stringify({ userId: 'u1', event: 'Order Completed', ...message }),
      })
      if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
    },
    async close() {
      await sluice.kill()
      scene.close()
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
    },
  }
}
