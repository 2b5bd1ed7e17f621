/** The parameter of calls that list something. */
export const limited = {
  limit: {
    schema: { type: 'string', pattern: '^([1-9][0-9]{0,2}|1000)$' },
    documented: { schema: { type: 'integer', minimum: 1, maximum: 1_000 }, example: 100 },
    description: 'The most entries of an answer, 1 to 1000; default 100.',
    example: '100',
  },
} as const

const limitUnlessSaid = 100

/** Returns the `limit` of a query that has passed schema validation, or the default. */
export function limitOf({ limit }: Readonly<Record<string, string>>): number {
  return limit === undefined ? limitUnlessSaid : Number(limit)
}
