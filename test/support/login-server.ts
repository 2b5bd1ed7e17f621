import { answer, type Receiver, type Script, startReceiver } from './receiver.ts'
import type { Identity } from './certificates.ts'

/** A token endpoint, and what it has given. A test can set how it answers. */
export type LoginServer = {
  readonly receiver: Receiver
  readonly tokenUrl: string
  /** The tokens that are valid now, and when each ends by the server's own clock, in epoch milliseconds. */
  readonly valid: Map<string, number>
  /** How many tokens were given. */
  readonly given: number
  /** The lifetime of tokens, in milliseconds. `saidMs`: what the answer says. */
  lifeMs: number
  saidMs: number
  /** Answers instead of giving a token. */
  instead: Script | undefined
  /** Ends all tokens. */
  revoke(): void
  stop(): Promise<void>
}

/** Starts an authorization server for the client `sluice` with the secret `secret`. */
export async function startLoginServer(options: { identity?: Identity } = {}): Promise<LoginServer> {
  const valid = new Map<string, number>()
  const authorization = `Basic ${Buffer.from('sluice:secret').toString('base64')}`
  let given = 0
  const receiver = await startReceiver((request, response, nth) => {
    if (server.instead !== undefined) {
      server.instead(request, response, nth)
      return
    }
    if (request.headers.authorization !== authorization) {
      answer(401, {}, JSON.stringify({ error: 'invalid_client' }))(request, response, nth)
      return
    }
    given++
    const token = `token-${given}-of-the-server`
    valid.set(token, Date.now() + server.lifeMs)
    const body = { access_token: token, token_type: 'Bearer', expires_in: server.saidMs / 1_000 }
    answer(200, { 'content-type': 'application/json' }, JSON.stringify(body))(request, response, nth)
  }, options)
  const server: LoginServer = {
    receiver,
    tokenUrl: `${receiver.origin}/token`,
    valid,
    get given() {
      return given
    },
    lifeMs: 3_600_000,
    saidMs: 3_600_000,
    instead: undefined,
    revoke: () => valid.clear(),
    stop: () => receiver.stop(),
  }
  return server
}

/** Answers 204 to requests with a valid token of the server, and 401 to all others. */
export function guardedBy(server: () => LoginServer): Script {
  return (request, response, nth) => {
    const token = request.headers.authorization?.replace('Bearer ', '') ?? ''
    const isValid = (server().valid.get(token) ?? 0) > Date.now()
    answer(isValid ? 204 : 401)(request, response, nth)
  }
}
