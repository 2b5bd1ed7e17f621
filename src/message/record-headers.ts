type HeaderValue = Buffer | string | null

/** Headers of a record as the Kafka client gives them: also null, and a list where a header is repeated. */
export type ReceivedHeaders = Readonly<Record<string, HeaderValue | HeaderValue[] | undefined>> | undefined

/** The place of the record that another one was made of. */
export type OriginPlace = { topic: string; partition: number; offset: number }

/** The value of a header, the first one where it is repeated. Null is absent. */
export function headerValue(headers: ReceivedHeaders, name: string): Buffer | string | undefined {
  const value = headers?.[name]
  const first = Array.isArray(value) ? value[0] : value
  return first ?? undefined
}

/** The value of a header as UTF-8 text, the first one where it is repeated. Null is absent. */
export function headerText(headers: ReceivedHeaders, name: string): string | undefined {
  return headerValue(headers, name)?.toString()
}

/** Reads a header `origin`: topic/partition/offset. */
export function parseOrigin(text: string): OriginPlace | undefined {
  const match = /^(.+)\/(\d+)\/(\d+)$/.exec(text)
  const partition = parseWholeNumber(match?.[2] ?? '')
  const offset = parseWholeNumber(match?.[3] ?? '')
  if (partition === undefined || offset === undefined) return undefined
  return { topic: match?.[1] ?? '', partition, offset }
}

/** Reads digits as a safe integer. */
export function parseWholeNumber(text: string): number | undefined {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(value) ? value : undefined
}
