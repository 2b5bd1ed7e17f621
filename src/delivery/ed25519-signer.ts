import { type KeyObject, sign } from 'node:crypto'
import { readSigningKey } from '../catalog/features/signing-keys.ts'
import { secondsOf, type Signer, webhookIdOf } from './signature.ts'

/**
 * Adds signatures of Ed25519 to those that `bySecrets` makes: `v1a,` and the signature of the id, the
 * timestamp and the bytes sent, in base64, one for each key (Standard Webhooks). Throws if a key breaks the
 * catalog's rules.
 */
export function withEd25519(texts: readonly string[], bySecrets: Signer | undefined): Signer {
  const keys = texts.map(keyOf)
  return (message, nowMs) => {
    const id = webhookIdOf(message.messageId)
    const timestamp = secondsOf(nowMs)
    const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`, 'latin1'), message.body])
    const own = keys.map((key) => `v1a,${sign(null, signed, key).toString('base64')}`).join(' ')
    const others = bySecrets?.(message, nowMs) ?? []
    const at = others.indexOf(signatureHeader) + 1
    if (at > 0) return others.with(at, `${others[at] ?? ''} ${own}`)
    return [...others, 'webhook-id', id, 'webhook-timestamp', timestamp, signatureHeader, own]
  }
}

const signatureHeader = 'webhook-signature'

function keyOf(text: string): KeyObject {
  const key = readSigningKey(text)
  if (key === undefined) throw new Error('a key was read that its rules refuse')
  return key
}
