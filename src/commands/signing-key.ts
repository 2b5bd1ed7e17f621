import { newSigningKey, publicKeysOf, signingKeyBreach } from '../catalog/features/signing-keys.ts'
import { WrongUseError } from '../roles/start/start-error.ts'

/** Returns the lines for a new private key. `given`: for the public key of this one. */
export function signingKeyLines(given: string | undefined, asJson: boolean): string[] {
  const breach = given === undefined ? undefined : signingKeyBreach(given)
  if (breach !== undefined) throw new WrongUseError(`standard input ${breach.problem}: ${breach.advice}`)
  const key = given ?? newSigningKey()
  const [known] = publicKeysOf([key])
  if (known === undefined) throw new Error('a key was made that can not be read')
  const { id, text } = known
  if (asJson)
    return [JSON.stringify({ ...(given === undefined && { privateKey: key }), publicKey: text, keyId: id })]
  return [
    ...(given === undefined ? [`private key, for signing.ed25519: ${key}`] : []),
    `public key, for receivers: ${text}`,
    `key id: ${id}`,
  ]
}
