export const clients = [
  { value: 'curl', name: 'curl' },
  { value: 'node', name: 'Node (@segment/analytics-node)' },
  { value: 'browser', name: 'Browser (analytics.js)' },
  { value: 'python', name: 'Python (segment-analytics-python)' },
  { value: 'go', name: 'Go (clients/go)' },
] as const
export type Client = (typeof clients)[number]['value']

type Place = { readonly url: string; readonly key: string }

/** Returns what to paste into a service, so that it sends one message to a source. */
export function snippetOf(client: Client, { url, key }: Place): string {
  const quoted = { url: JSON.stringify(url), key: JSON.stringify(key) }
  switch (client) {
    case 'curl':
      return `curl ${shell(`${url}/v1/track`)} -u ${shell(`${key}:`)} \\
  -d '{"userId":"u1","event":"Order Completed","properties":{"total":30}}'`
    case 'node':
      return `import { Analytics } from '@segment/analytics-node'

const analytics = new Analytics({ writeKey: ${quoted.key}, host: ${quoted.url} })
analytics.track({ userId: 'u1', event: 'Order Completed', properties: { total: 30 } })
await analytics.closeAndFlush()`
    case 'browser':
      return `import { AnalyticsBrowser } from '@segment/analytics-next'

const analytics = AnalyticsBrowser.load(
  { writeKey: ${quoted.key}, cdnURL: ${quoted.url} },
  { integrations: { 'Segment.io': { apiHost: ${JSON.stringify(`${url.replace(/^https?:\/\//, '')}/v1`)} } } },
)
analytics.track('Order Completed', { total: 30 })`
    case 'python':
      return `import segment.analytics as analytics

analytics.write_key = ${quoted.key}
analytics.host = ${quoted.url}
analytics.track('u1', 'Order Completed', {'total': 30})
analytics.flush()`
    case 'go':
      return `client := analytics.New(${quoted.key}) // github.com/sluice/sluice/clients/go
client.Endpoint = ${quoted.url}
client.Track(&analytics.Track{UserId: "u1", Event: "Order Completed"})
client.Close()`
  }
}

/** Quotes a text for a shell. */
export function shell(text: string): string {
  return /^[\w.:/@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
