import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'

/**
 * The number of requests for each checked signature. To check all would cost the receiver as much as the
 * sender spends on them.
 */
const checkedEvery = 100

/** Checks `X-Signature` of one in 100 requests. */
export class SignatureCheck {
  readonly #key: KeyObject
  readonly counts = { checked: 0, wrong: 0 }
  #shown = 0

  constructor(secret: string) {
    this.#key = createSecretKey(Buffer.from(secret))
  }

  show(head: string, body: Buffer): void {
    this.#shown++
    if (this.#shown % checkedEvery !== 0) return
    const given = /\r\nx-signature: *([0-9a-f]{40})\r\n/i.exec(head)?.[1]
    this.counts.checked++
    if (given !== createHmac('sha1', this.#key).update(body).digest('hex')) this.counts.wrong++
  }
}
