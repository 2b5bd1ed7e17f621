import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { request } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { StartError } from '../roles/start/start-error.ts'

export type UserKeyPlace = {
  readonly secret: string
  /** The folder with the files of a service account: `token`, `ca.crt` and `namespace`. */
  readonly folder: string
  /** The URL of the API server. */
  readonly api: string
}

const withinMs = 10_000

/**
 * Makes a Secret with a new key for users, under the name `user-key`. If there is a Secret of this name, it
 * stays as it is: with another key, users in the delivery log would not be found any more. It only creates,
 * so its service account needs no right to read a Secret.
 */
export async function makeUserKey({ secret, folder, api }: UserKeyPlace): Promise<string> {
  const [token, ca, namespace] = await Promise.all(
    ['token', 'ca.crt', 'namespace'].map(async (name) => (await readFile(join(folder, name), 'utf8')).trim()),
  )
  const body = JSON.stringify({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: secret },
    type: 'Opaque',
    data: { 'user-key': Buffer.from(randomBytes(32).toString('hex')).toString('base64') },
  })
  const url = new URL(`/api/v1/namespaces/${encodeURIComponent(namespace ?? '')}/secrets`, api)
  const { status, said } = await post(url, body, { token: token ?? '', ca: ca ?? '' })
  if (status === 201) return `The Secret ${secret} has a new key.`
  if (status === 409) return `The Secret ${secret} is there already, and stays as it is.`
  throw new StartError(
    `The Secret ${secret} can not be made (${status} ${said}): let the service account create Secrets in ${namespace}, or set deliveryLog.existingSecret and deliveryLog.userKeyKey.`,
  )
}

async function post(
  url: URL,
  body: string,
  { token, ca }: { token: string; ca: string },
): Promise<{ status: number; said: string }> {
  const signal = AbortSignal.timeout(withinMs)
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  return await new Promise((resolve, reject) => {
    const failed = (cause: Error): void =>
      reject(new StartError(`${url.origin} does not answer: ${cause.message}.`, { cause }))
    request(url, { method: 'POST', ca, headers, signal }, (answer) => {
      const { statusCode: status = 0 } = answer
      text(answer).then((whole) => resolve({ status, said: messageIn(whole) }), failed)
    })
      .on('error', failed)
      .end(body)
  })
}

/** Returns what a Status of Kubernetes says. It has no part of the Secret. */
function messageIn(answer: string): string {
  const found = /"message":\s*("(?:[^"\\]|\\.)*")/.exec(answer)?.[1]
  return found === undefined ? '' : String(JSON.parse(found)).slice(0, 500)
}
