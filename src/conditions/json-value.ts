/** What JSON.parse returns. Values of messages are never changed. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject

export type JsonObject = { readonly [name: string]: unknown }

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
