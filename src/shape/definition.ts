/** The methods that a mapping may choose. */
export const mappingMethods = ['POST', 'PUT', 'PATCH'] as const
export type MappingMethod = (typeof mappingMethods)[number]

/** The forms in which a body is written. */
export const mappingFormats = ['json', 'form'] as const
export type MappingFormat = (typeof mappingFormats)[number]

/** The part of a mapping that makes a request. It is plain data, and is written to Kafka as JSON. */
export type RequestMapping = {
  readonly method?: MappingMethod | undefined
  /** A template that is added to the path of the URL, such as `/users/{{userId}}`. */
  readonly path?: string | undefined
  /** The values of headers by name, each in mapping-kit. */
  readonly headers?: Readonly<Record<string, unknown>> | undefined
  /** The body in mapping-kit. Absent: the message. */
  readonly body?: unknown
  readonly format?: MappingFormat | undefined
  /** The only fields of the message that the mapping sees. */
  readonly allow?: readonly string[] | undefined
  /** The fields of the message that the mapping doesn't see. */
  readonly block?: readonly string[] | undefined
}

/** A mapping of a destination. `condition`: the messages that it is for, in CEL. Absent: all. */
export type Mapping = RequestMapping & {
  readonly name?: string | undefined
  readonly condition?: string | undefined
}

/** Returns the part of a mapping that makes the request, as a text that is the same for the same request. */
export function requestText({ method, path, headers, body, format, allow, block }: Mapping): string {
  return JSON.stringify({ method, path, headers, body, format, allow, block })
}
