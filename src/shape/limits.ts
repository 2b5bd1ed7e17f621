/**
 * Limits on a mapping, so that none costs more than a known number of steps, and that its text fits into a
 * header of a record.
 */
export const mappingLimits = {
  /** The most mappings of a destination. */
  mappings: 20,
  /** The most bytes of a mapping, as JSON without spaces, without its name and condition. */
  bytes: 5_000,
  /** The most objects, lists and values of a mapping. */
  nodes: 500,
  /** The most levels of a mapping. */
  depth: 20,
  /** The most characters of a path or a template that a mapping takes from the message. */
  dynamicCharacters: 500,
  /** The most characters of the pattern and of the replacement of `@replace`, as at Segment. */
  replaceCharacters: 10,
  /** The most levels of a text that `@json` decodes. */
  decodedDepth: 100,
  /** The most fields in `allow`, and in `block`. */
  fields: 100,
  /** The most headers. */
  headers: 20,
  /** The most bytes of a body that a mapping makes. */
  bodyBytes: 1_048_576,
  /**
   * The most steps for one message. A step is a value that is looked at, or a character that is written. No
   * mapping needs more for the largest body.
   */
  steps: 4 * 1_048_576,
} as const
