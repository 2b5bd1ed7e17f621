/** The name of the header by which a client may repeat a request without doing it twice. */
export const idempotencyHeader = 'Idempotency-Key'

/** The header of calls that are carried out once a day for each key. */
export const idempotent = {
  [idempotencyHeader]: {
    schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
    description:
      'A text of yours that no other request has, such as a UUID. If you repeat the request with the same key within a day, it is not done again, and the answer is what it was. With another request of the same token, the answer is 422. See docs/admin-api.md.',
    example: '7f1d6c1e-5c0f-4a1e-9a53-0d6f4f3b2f11',
  },
} as const
