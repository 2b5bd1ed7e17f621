import { type Answer, problem } from './answer.ts'
import type { BodyFault } from '../messages/body.ts'
import { maxBatchBytes, maxBatchMessages, maxMessageBytes } from '../messages/request-limits.ts'
import type { Call } from '../messages/item.ts'

export const beyondLimits = problem(
  'invalid_body',
  'Send fewer levels and keys, and numbers up to 1.7e308: the message can not be written.',
)
export const unknownWriteKey = problem(
  'unknown_write_key',
  'No source has this write key. Send a write key by Basic authentication, as its user name, or as writeKey in the body.',
)
export const notAList = problem('invalid_body', 'Send batch as a list of messages.')
export const notObjects = problem(
  'invalid_body',
  'Send context and integrations as objects, or leave them out.',
)
export const tooManyMessages = problem(
  'too_many_messages',
  `Send at most ${maxBatchMessages} messages in a batch.`,
)
export const contextTooLarge = problem(
  'payload_too_large',
  'Send less: with the context of the batch in each of its messages it is too large.',
)

export function unreadable(fault: BodyFault, call: Call): Answer {
  switch (fault) {
    case 'too_large':
      return call === 'batch'
        ? problem('payload_too_large', `Send at most ${maxBatchBytes} bytes (500 KB) in a batch.`)
        : problem('payload_too_large', `Send at most ${maxMessageBytes} bytes (32 KB) in a message.`)
    case 'too_dense':
      return problem(
        'too_dense',
        `The body inflates to more work than its length allows. ${call === 'batch' ? 'Send fewer messages in a batch, or send it' : 'Send it'} without gzip.`,
      )
    case 'bad_gzip':
      return problem('malformed_json', 'Send the whole body in gzip, or none of it.')
    case 'not_utf8':
      return problem(
        'malformed_json',
        'Send the body as UTF-8: plain, or in gzip, once, and in no other compression.',
      )
    case 'not_json':
      return problem('malformed_json', 'Send the body as JSON (RFC 8259). NaN and Infinity are no JSON.')
    case 'not_an_object':
      return problem('invalid_body', 'Send the body as one JSON object.')
  }
}

export function refusedTooOften(waitMs: number): Answer {
  return problem(
    'refused_too_often',
    'Too many requests from this address were refused. Correct them. Send this one again.',
    secondsOf(waitMs),
  )
}

export function rateLimited(waitMs: number): Answer {
  return problem('rate_limited', 'The source is over its rate of messages a second.', secondsOf(waitMs))
}

function secondsOf(waitMs: number): number {
  return Math.max(1, Math.ceil(waitMs / 1_000))
}
