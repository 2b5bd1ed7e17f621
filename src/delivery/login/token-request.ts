import type { OAuthLogin } from '../../catalog/features/hook-login.ts'
import type { HookTls } from '../../catalog/features/hook-tls.ts'
import { answerText } from '../../http/answer-text.ts'
import {
  clientAuthorization,
  readTokenAnswer,
  type Token,
  type TokenFault,
  tokenForm,
} from '../../http/client-credentials.ts'
import { secretsOf } from '../../secrets/secret-texts.ts'
import { textWithoutSecrets } from '../../secrets/without-secrets.ts'
import { describeForCustomer, type Outcome } from '../outcomes/outcome.ts'
import type { HookOwner } from '../send/hook-pool.ts'
import type { Sender, Target } from '../send/sender.ts'

/**
 * The result of a request for a token. `askedMs`: the time of the request, in epoch milliseconds. `afterMs`:
 * the wait that the endpoint asked for, or 0.
 */
export type TokenResult =
  | { readonly ok: true; readonly token: Token; readonly askedMs: number }
  | { readonly ok: false; readonly problem: string; readonly afterMs: number }

/** The largest answer that is read, in bytes. */
const maxAnswerBytes = 64 * 1024
/**
 * The largest token, in bytes. Each request has it in a header, and hardly any server takes a head that is
 * larger.
 */
const maxTokenBytes = 16 * 1024
/** The most characters of what an endpoint says about a refusal. */
const maxSaid = 200

/**
 * Requests for tokens by one login. They take the same way as deliveries: addresses, names, proxy, deadline.
 */
export class TokenRequests {
  readonly #login: OAuthLogin
  readonly #sender: Pick<Sender, 'post'>
  readonly #target: Target
  readonly #body: Buffer

  /** `tls`: what the requests show and trust, if the token endpoint is at the host of the hook. */
  constructor(
    login: OAuthLogin,
    { sender, owner, tls }: { sender: Pick<Sender, 'post'>; owner: HookOwner; tls: HookTls | undefined },
  ) {
    this.#login = login
    this.#sender = sender
    const authorization = clientAuthorization(login)
    this.#target = {
      origin: login.tokenOrigin,
      path: login.tokenPath,
      headers: [
        'User-Agent',
        'Sluice/1.0',
        'Accept',
        'application/json',
        'Content-Type',
        'application/x-www-form-urlencoded',
        ...(authorization === undefined ? [] : ['Authorization', authorization]),
      ],
      owner,
      tls,
      wholeAnswerBytes: maxAnswerBytes,
    }
    this.#body = Buffer.from(tokenForm(login))
  }

  /** Makes one request. Never rejects. `askedMs`: the time of the request, in epoch milliseconds. */
  make(askedMs: number): Promise<TokenResult> {
    return new Promise((resolve) => {
      this.#sender.post(this.#target, this.#body, [], {
        answered: (outcome) => resolve(this.#resultOf(outcome, askedMs)),
        released: () => undefined,
      })
    })
  }

  #resultOf(outcome: Outcome, askedMs: number): TokenResult {
    const { tokenOrigin } = this.#login
    if (outcome.kind !== 'answer')
      return { ok: false, problem: `${tokenOrigin}: ${describeForCustomer(outcome)}`, afterMs: 0 }
    const { status, retryAfterMs = 0, body = new Uint8Array() } = outcome
    const answer = readTokenAnswer(status, answerText(body), askedMs)
    if (answer.ok && answer.token.value.length > maxTokenBytes)
      return { ok: false, problem: `${tokenOrigin}: ${tooLarge}`, afterMs: retryAfterMs }
    if (answer.ok) return { ok: true, token: answer.token, askedMs }
    const said = answer.said.map((text) => this.#masked(text))
    const what = describeFault(answer.fault, status)
    return { ok: false, problem: [`${tokenOrigin}:`, what, ...said].join(' '), afterMs: retryAfterMs }
  }

  /** Returns what an endpoint said, in one line and without the secrets of the request. */
  #masked(text: string): string {
    const { clientSecret } = this.#login
    // In a form, a space is written as `+`.
    const inForm = new URLSearchParams([['', clientSecret]]).toString().slice(1)
    const secrets = [clientSecret, inForm, ...secretsOf([clientAuthorization(this.#login) ?? ''], '')]
    return textWithoutSecrets(text, secrets)
      .replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ')
      .slice(0, maxSaid)
  }
}

const tooLarge = `the access_token is larger than ${maxTokenBytes / 1024} KiB, which hardly any server takes in a header: ask for fewer scopes, or let the token have fewer claims`

function describeFault(fault: TokenFault, status: number): string {
  switch (fault) {
    case 'status':
      return status >= 300 && status < 400
        ? `status ${status}: Sluice follows no redirects, write the final URL as tokenUrl`
        : `status ${status}`
    case 'body':
      return `status ${status} without an access_token: its body is not JSON, too long, or came too slowly`
    case 'absent':
      return `status ${status} without an access_token`
    case 'unusable':
      return `status ${status} with an access_token that no header can have`
  }
}
