import process from 'node:process'

/**
 * The sampler that decides which traces are recorded, in OpenTelemetry's terms. Of the traces that begin in
 * Sluice, the share `ratio` (0 to 1) is recorded.
 */
export type TraceSampler = {
  readonly isParentBased: boolean
  readonly root: 'always_on' | 'always_off' | 'traceidratio'
  readonly ratio: number
}

/**
 * The settings from those OpenTelemetry variables that Sluice has to read, because the exporter doesn't read
 * them.
 */
export type TracingSettings = {
  /** The address to which spans are sent, without a login or a query. It is only for log lines. */
  readonly endpoint: string
  readonly sampler: TraceSampler
  /** The most spans that may wait for their export. While this many spans wait, further spans are dropped. */
  readonly queueSize: number
  readonly batchSize: number
  readonly scheduleDelayMs: number
  readonly exportTimeoutMs: number
}

/**
 * The result of reading the variables. `faults`: the invalid variables, each with advice. If there are
 * faults, tracing is off.
 */
export type ReadTracing =
  | { readonly kind: 'off' }
  | { readonly kind: 'on'; readonly settings: TracingSettings }
  | { readonly kind: 'faulty'; readonly faults: readonly string[] }

type Variables = Readonly<Record<string, string | undefined>>

/**
 * Reads the `OTEL_…` variables. Tracing is on if an endpoint is set, unless `OTEL_SDK_DISABLED=true` or
 * `OTEL_TRACES_EXPORTER=none` is set. An empty variable counts as unset.
 */
export function readTracing(env: Variables = process.env): ReadTracing {
  const given = (...names: readonly string[]): string | undefined =>
    names.map((name) => env[name]?.trim()).find((value) => value !== undefined && value !== '')
  const endpoint = given('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT')
  const exporter = given('OTEL_TRACES_EXPORTER') ?? 'otlp'
  const isDisabled = given('OTEL_SDK_DISABLED')?.toLowerCase() === 'true'
  if (endpoint === undefined || isDisabled || exporter === 'none') return { kind: 'off' }

  const faults: string[] = []
  if (exporter !== 'otlp') faults.push('OTEL_TRACES_EXPORTER: set otlp or none')
  const protocol = given('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL')
  if (protocol !== undefined && protocol !== 'http/protobuf') faults.push(protocolFault)
  const shown = shownEndpoint(endpoint)
  if (shown === undefined) faults.push(endpointFault)
  const count = (name: string, otherwise: number, least: number): number => {
    const text = given(name)
    const value = text === undefined ? otherwise : Number(text)
    if (Number.isSafeInteger(value) && value >= least) return value
    faults.push(`${name}: set a whole number from ${least}`)
    return otherwise
  }
  const settings = {
    endpoint: shown ?? '',
    sampler: readSampler(given, faults),
    queueSize: count('OTEL_BSP_MAX_QUEUE_SIZE', 2_048, 1),
    batchSize: count('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512, 1),
    scheduleDelayMs: count('OTEL_BSP_SCHEDULE_DELAY', 5_000, 0),
    exportTimeoutMs: count('OTEL_BSP_EXPORT_TIMEOUT', 30_000, 1),
  }
  return faults.length === 0 ? { kind: 'on', settings } : { kind: 'faulty', faults }
}

const protocolFault =
  'OTEL_EXPORTER_OTLP_PROTOCOL: set http/protobuf, which collectors take on port 4318; Sluice does not speak grpc or http/json'
const endpointFault =
  'OTEL_EXPORTER_OTLP_ENDPOINT: set a URL with http or https, such as http://collector:4318'

function shownEndpoint(given: string): string | undefined {
  const url = URL.parse(given)
  return url?.protocol === 'http:' || url?.protocol === 'https:' ? `${url.origin}${url.pathname}` : undefined
}

const roots: Readonly<Record<string, TraceSampler['root']>> = {
  always_on: 'always_on',
  always_off: 'always_off',
  traceidratio: 'traceidratio',
}

function readSampler(given: (name: string) => string | undefined, faults: string[]): TraceSampler {
  const name = given('OTEL_TRACES_SAMPLER') ?? 'parentbased_always_on'
  const isParentBased = name.startsWith('parentbased_')
  const root = roots[isParentBased ? name.slice('parentbased_'.length) : name]
  if (root === undefined) {
    const known = Object.keys(roots)
    faults.push(`OTEL_TRACES_SAMPLER: set ${known.join(', ')}, or one of them behind parentbased_`)
  }
  const ratio = Number(given('OTEL_TRACES_SAMPLER_ARG') ?? 1)
  const isRatio = ratio >= 0 && ratio <= 1
  if (root === 'traceidratio' && !isRatio)
    faults.push('OTEL_TRACES_SAMPLER_ARG: set the share of traces to record, from 0 to 1')
  return { isParentBased, root: root ?? 'always_off', ratio: isRatio ? ratio : 0 }
}
