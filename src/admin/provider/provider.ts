import { createHash, randomBytes } from 'node:crypto'
import * as oauth from 'oauth4webapi'

export type ProviderOptions = {
  readonly issuer: string
  readonly clientId: string
  /** Reads the secret anew each time, so that its file may be replaced. `undefined`: a public client. */
  readonly secret: () => Promise<string | undefined>
  /** What is asked for, such as `openid email`. */
  readonly scopes: string
  /** Where the provider sends browsers back to. */
  readonly redirectUri: string
  /** The claim that says what somebody may do. */
  readonly claim: string
  /** The claim that names somebody for the audit trail. */
  readonly nameClaim: string
}

/** Whom the provider has named. */
export type Named = {
  readonly issuer: string
  readonly subject: string
  readonly name: string
  /** The values of the claim that says what somebody may do. */
  readonly claimed: readonly string[]
}

/** `denied`: the person or the provider has refused. `stale`: the sign-in was not begun by this browser. */
export type ProviderAnswer =
  | { readonly ok: true; readonly named: Named }
  | { readonly ok: false; readonly why: 'denied' | 'stale' }

/** How long each request to the provider may take, in milliseconds. */
const answersWithinMs = 10_000
/** After how long the addresses and the keys of the provider are asked for again, in milliseconds. */
const knownForMs = 3_600_000

/**
 * Signs people in at an OpenID provider, by a code with PKCE. What a browser has to bring back is made from
 * one secret, which the browser keeps: so any process of the admin API can finish what another one began.
 */
export class Provider {
  readonly #options: ProviderOptions
  readonly #client: oauth.Client
  #known: { readonly atMs: number; readonly server: Promise<oauth.AuthorizationServer> } | undefined

  constructor(options: ProviderOptions) {
    this.#options = options
    this.#client = { client_id: options.clientId }
  }

  /** Begins a sign-in: where the browser goes, and the secret that it keeps. Rejects if nobody answers. */
  async begin(): Promise<{ readonly url: string; readonly secret: string }> {
    const { clientId, scopes, redirectUri } = this.#options
    const server = await this.#server()
    if (server.authorization_endpoint === undefined)
      throw new Error('the provider names no authorization_endpoint')
    const secret = randomBytes(32).toString('base64url')
    const { state, nonce, verifier } = partsOf(secret)
    const url = new URL(server.authorization_endpoint)
    const query = {
      client_id: clientId,
      redirect_uri: redirectUri,
      response_type: 'code',
      scope: scopes,
      state,
      nonce,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    return { url: url.href, secret }
  }

  /**
   * Finishes a sign-in with what the provider has sent along. Rejects if the provider doesn't answer, or
   * answers with something that can't be believed.
   */
  async finish(query: URLSearchParams, secret: string): Promise<ProviderAnswer> {
    const { state, nonce, verifier } = partsOf(secret)
    if (query.get('state') !== state) return { ok: false, why: 'stale' }
    const server = await this.#server()
    const found = acceptedIn(server, this.#client, { query, state })
    if (found === undefined) return { ok: false, why: 'denied' }
    const given = await this.#options.secret()
    const response = await oauth.authorizationCodeGrantRequest(
      server,
      this.#client,
      authOf(server, given),
      found,
      this.#options.redirectUri,
      verifier,
      this.#request(),
    )
    const tokens = await oauth.processAuthorizationCodeResponse(server, this.#client, response, {
      expectedNonce: nonce,
      requireIdToken: true,
    })
    await oauth.validateApplicationLevelSignature(server, response, this.#request())
    const claims = oauth.getValidatedIdTokenClaims(tokens)
    if (claims === undefined) throw new Error('the provider sent no ID token')
    return { ok: true, named: this.#named(await this.#withUserInfo(server, claims, tokens.access_token)) }
  }

  /** Some providers have claims only in their answer about the user. */
  async #withUserInfo(
    server: oauth.AuthorizationServer,
    claims: Claims,
    accessToken: string,
  ): Promise<Claims> {
    if (claims[this.#options.claim] !== undefined || server.userinfo_endpoint === undefined) return claims
    const response = await oauth.userInfoRequest(server, this.#client, accessToken, this.#request())
    const more = await oauth.processUserInfoResponse(server, this.#client, claims.sub, response)
    return { ...more, ...claims }
  }

  #named(claims: Claims): Named {
    const { claim, nameClaim, issuer } = this.#options
    const value = claims[claim]
    const claimed = (Array.isArray(value) ? value : [value]).filter((one) => typeof one === 'string')
    const name = claims[nameClaim]
    // Anybody may write any address into an account, until the provider has verified it.
    const isName = typeof name === 'string' && (nameClaim !== 'email' || claims['email_verified'] !== false)
    return { issuer, subject: claims.sub, name: isName ? name : claims.sub, claimed }
  }

  #server(): Promise<oauth.AuthorizationServer> {
    const nowMs = performance.now()
    if (this.#known !== undefined && nowMs - this.#known.atMs < knownForMs) return this.#known.server
    const issuer = new URL(this.#options.issuer)
    const server = oauth
      .discoveryRequest(issuer, { algorithm: 'oidc', ...this.#request() })
      .then((response) => oauth.processDiscoveryResponse(issuer, response))
    this.#known = { atMs: nowMs, server }
    server.catch(() => {
      if (this.#known?.server === server) this.#known = undefined
    })
    return server
  }

  #request() {
    // The settings allow a provider without TLS only on this machine.
    const isPlain = this.#options.issuer.startsWith('http:')
    return { signal: AbortSignal.timeout(answersWithinMs), [oauth.allowInsecureRequests]: isPlain }
  }
}

type Claims = oauth.IDToken | (oauth.UserInfoResponse & oauth.IDToken)

/** Returns what the provider has sent along, or `undefined` if it has refused. */
function acceptedIn(
  server: oauth.AuthorizationServer,
  client: oauth.Client,
  { query, state }: { readonly query: URLSearchParams; readonly state: string },
): URLSearchParams | undefined {
  try {
    return oauth.validateAuthResponse(server, client, query, state)
  } catch (error) {
    if (error instanceof oauth.AuthorizationResponseError) return undefined
    throw error
  }
}

/** Says who this client is, in the way that the provider takes. */
function authOf(
  { token_endpoint_auth_methods_supported: methods = ['client_secret_basic'] }: oauth.AuthorizationServer,
  secret: string | undefined,
): oauth.ClientAuth {
  if (secret === undefined) return oauth.None()
  return methods.includes('client_secret_basic')
    ? oauth.ClientSecretBasic(secret)
    : oauth.ClientSecretPost(secret)
}

/** Makes what is sent to the provider from the secret of a sign-in. Nobody can compute one from another. */
function partsOf(secret: string) {
  const part = (name: string): string => createHash('sha256').update(`${name} ${secret}`).digest('base64url')
  return { state: part('state'), nonce: part('nonce'), verifier: part('verifier') }
}
