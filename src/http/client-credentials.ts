// OAuth 2 client credentials (RFC 6749, sections 2.3.1, 4.4 and 5), without the request itself.

/** A bearer token, and the time in epoch milliseconds at which the token ends. */
export type Token = { readonly value: string; readonly endsMs: number }

export type ClientCredentials = {
  readonly clientId: string
  readonly clientSecret: string
  readonly scope?: string | undefined
  readonly audience?: string | undefined
  /**
   * How the client names itself. `basic`: in the header `Authorization`. `post`: in the form, for servers
   * that don't know the other way.
   */
  readonly clientAuth?: 'basic' | 'post'
}

/** The lifetime of a token, in milliseconds, if neither the answer nor the token names a lifetime. */
const unsaidLifeMs = 5 * 60_000

/** Returns the body of a request for a token, of the type `application/x-www-form-urlencoded`. */
export function tokenForm({
  clientId,
  clientSecret,
  scope,
  audience,
  clientAuth,
}: ClientCredentials): string {
  return new URLSearchParams({
    grant_type: 'client_credentials',
    ...(clientAuth === 'post' && { client_id: clientId, client_secret: clientSecret }),
    ...(scope !== undefined && { scope }),
    ...(audience !== undefined && { audience }),
  }).toString()
}

/** Returns the header `Authorization` of a request for a token. `undefined`: the form names the client. */
export function clientAuthorization({
  clientId,
  clientSecret,
  clientAuth,
}: ClientCredentials): string | undefined {
  if (clientAuth === 'post') return undefined
  const login = `${formEncoded(clientId)}:${formEncoded(clientSecret)}`
  return `Basic ${Buffer.from(login).toString('base64')}`
}

/**
 * Why an answer gives no token. `status`: its status. `body`: its body is no JSON object. `absent`: the
 * object has no token. `unusable`: the token has characters that a header can't have.
 */
export type TokenFault = 'status' | 'body' | 'absent' | 'unusable'

/** What a token endpoint has answered. `error`: the code of RFC 6749, section 5.2, if there is one. */
export type TokenAnswer =
  | { readonly ok: true; readonly token: Token }
  | {
      readonly ok: false
      readonly fault: TokenFault
      readonly error: string | undefined
      /** What the endpoint said, which may repeat secrets of the request. */
      readonly said: readonly string[]
    }

/** Reads the answer to a request for a token that was made at `askedMs` (epoch milliseconds). */
export function readTokenAnswer(status: number, text: string, askedMs: number): TokenAnswer {
  const answer = objectOf(text)
  const { access_token: value, expires_in: lifeSeconds, error, error_description: description } = answer ?? {}
  const none = (fault: TokenFault): TokenAnswer => {
    const said = [error, description].filter((one) => typeof one === 'string')
    return { ok: false, fault, error: typeof error === 'string' ? error : undefined, said }
  }
  // RFC 6749 says 200, but some servers answer 201.
  if (status < 200 || status > 299) return none('status')
  if (answer === undefined) return none('body')
  if (typeof value !== 'string' || value === '') return none('absent')
  if (!/^[\x21-\x7e]+$/.test(value)) return none('unusable')
  const lifeMs = Number(lifeSeconds) * 1_000
  return {
    ok: true,
    token: {
      value,
      endsMs: lifeMs > 0 ? askedMs + lifeMs : (endOf(value, askedMs) ?? askedMs + unsaidLifeMs),
    },
  }
}

/** Returns the object in a text of JSON. `undefined`: there is none. */
function objectOf(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return Object(JSON.parse(text))
  } catch {
    return undefined
  }
}

/**
 * Returns the expiry that a JSON Web Token names, in epoch milliseconds. Returns `undefined` if the token
 * names none after `askedMs`, or isn't a JSON Web Token. An earlier one says that the clocks differ, and
 * nothing about a token that was just issued.
 */
function endOf(token: string, askedMs: number): number | undefined {
  const payload = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()
  const exp = objectOf(payload)?.['exp']
  return typeof exp === 'number' && exp * 1_000 > askedMs ? exp * 1_000 : undefined
}

function formEncoded(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1)
}
