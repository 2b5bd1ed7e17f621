import { hash } from 'node:crypto'
import type { DestinationDefinition, HookDefinition } from './endpoint.ts'

/**
 * Number of hexadecimal digits by which each part of a hook adds to its content, four bits each. So whoever
 * reads a content learns at most twelve bits of a secret: of a million guesses, about 240 remain possible. An
 * edit of one part is overlooked once in 4,096 times.
 */
const partDigits = 3
const partBits = 4 * partDigits

const known = new WeakMap<DestinationDefinition, ReadonlyMap<string, string>>()

/**
 * Returns the content of each hook of a destination, by the hook's id. A content is a short text that stands
 * for everything except the message by which a receiver may judge a request: URL, headers, login, client
 * certificate and signatures. If
 * any of these is edited, the content is another one. Contents may be written to Kafka.
 */
export function hookContentsOf(definition: DestinationDefinition): ReadonlyMap<string, string> {
  let contents = known.get(definition)
  if (contents === undefined) {
    const signing = digitsOf(signingBits(definition))
    contents = new Map(definition.hooks.map((hook) => [hook.id, urlAndHeaders(hook) + signing]))
    known.set(definition, contents)
  }
  return contents
}

function urlAndHeaders({ origin, path, headers, login, tls }: HookDefinition): string {
  const ofHeaders = headers.map(([name, value]) => bitsOf(name.toLowerCase(), value))
  // A hook without them has the content that it had before there were any.
  for (const [name, value] of [...Object.entries(login ?? {}), ...Object.entries(tls ?? {})])
    ofHeaders.push(bitsOf(`feature ${name}`, value))
  return [bitsOf('origin', origin), bitsOf('path', path), mixed(ofHeaders)].map(digitsOf).join('')
}

/**
 * The bits of a secret are the same in every destination, and before and after the secret is replaced.
 * Otherwise each use of a secret would tell twelve bits more of it.
 */
function signingBits(definition: DestinationDefinition): number {
  const { sharedSecret = '', nextSharedSecret = '', standardWebhooks, signingKeys = [], batch } = definition
  const signature = bitsOf('standard webhooks', String(standardWebhooks))
  const secrets = [bitsOf('secret', sharedSecret), rotated(bitsOf('secret', nextSharedSecret)), signature]
  const keys = signingKeys.map((key) => bitsOf('signing key', key))
  // A receiver may refuse arrays, and accept single messages.
  const form = batch === undefined ? [] : [bitsOf('batch', batch.format)]
  return mixed([...secrets, ...keys, ...form])
}

/**
 * Combines the bits of several values into as many bits as one value has. If one of two headers is edited,
 * both contents together tell no more of the other header than one content does.
 */
function mixed(all: readonly number[]): number {
  return all.reduce((sum, bits) => sum ^ bits, 0)
}

/** Moves the bits by one place, so that two values that are exchanged have another sum. */
function rotated(bits: number): number {
  return ((bits << 1) | (bits >> (partBits - 1))) & (2 ** partBits - 1)
}

/** Returns the first bits of the hash of a value. */
function bitsOf(name: string, value: string): number {
  const digest = hash('sha256', JSON.stringify([name, value]), 'buffer')
  return digest.readUInt16BE(0) >> (16 - partBits)
}

function digitsOf(bits: number): string {
  return bits.toString(16).padStart(partDigits, '0')
}
