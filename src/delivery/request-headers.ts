import { withEd25519 } from './ed25519-signer.ts'
import { createSigner, type SignedMessage, type Signing, webhookIdOf } from './signature.ts'

/** A message, and the number of the attempt in which it is sent, from 1. */
export type NamedMessage = SignedMessage & { readonly attempts: number }

/**
 * Returns the headers of a request that depend on its message, for an attempt made at `nowMs` (epoch): name,
 * value, name, value. They come after those of the hook.
 */
export type RequestHeaders = (message: NamedMessage, nowMs: number) => readonly string[]

const none: readonly string[] = []

/**
 * Creates the headers of one destination's requests: its signatures, if the destination has a secret or keys,
 * and the names of the request, if `isNamed`. A receiver can put these names into its log, so that a request
 * is found on both sides. Throws if they break the catalog's rules.
 */
export function createRequestHeaders(
  {
    sharedSecret,
    signingKeys,
    ...signing
  }: Omit<Signing, 'sharedSecret'> & {
    readonly sharedSecret: string | undefined
    readonly signingKeys?: readonly string[] | undefined
  },
  isNamed: boolean,
): RequestHeaders {
  const bySecrets = sharedSecret === undefined ? undefined : createSigner({ ...signing, sharedSecret })
  const sign = signingKeys === undefined ? bySecrets : withEd25519(signingKeys, bySecrets)
  if (!isNamed) return sign ?? (() => none)
  return (message, nowMs) => {
    const names = [
      'X-Sluice-Message-Id',
      webhookIdOf(message.messageId),
      'X-Sluice-Attempt',
      String(message.attempts),
    ]
    return sign === undefined ? names : sign(message, nowMs).concat(names)
  }
}
