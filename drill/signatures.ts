import { createHmac } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { Webhook } from 'standardwebhooks'
import { type Destination, secretOf } from './fleet.ts'

/**
 * Returns a function that checks the signatures of a request for the destination. The function returns a text
 * about the wrong signature, or `undefined` if all signatures are right.
 */
export function createVerifier(destination: Destination) {
  const secret = secretOf(destination.id)
  const webhook = destination.isStandard
    ? new Webhook(`whsec_${Buffer.from(secret).toString('base64')}`)
    : undefined
  return (body: Buffer, headers: IncomingHttpHeaders): string | undefined => {
    const expected = createHmac('sha1', secret).update(body).digest('hex')
    if (headers['x-signature'] !== expected) return `X-Signature is ${String(headers['x-signature'])}`
    try {
      webhook?.verify(body, textHeaders(headers))
      return undefined
    } catch (error) {
      return `webhook-signature: ${String(error)}`
    }
  }
}

function textHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))
}
