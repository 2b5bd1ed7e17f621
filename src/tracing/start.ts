import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { TraceSampler, TracingSettings } from '../config/tracing-settings.ts'
import type { GatewayTracing } from '../gateway/calls/request-tracing.ts'
import { countedExport, type SpanFate } from './counted-export.ts'
import { createGatewayTracing } from './request-span.ts'
import { createWorkerTracing, type WorkerTracing } from './worker-tracing.ts'

export type StartTracingOptions = {
  readonly settings: TracingSettings
  /**
   * The name of the service. It is used unless `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES` sets a name.
   */
  readonly serviceName: string
  readonly serviceVersion: string
  readonly groupId: string
  /** True if requests to endpoints have headers that name the trace. */
  readonly isForwarded: boolean
  readonly onSpans: (fate: SpanFate, count: number) => void
  readonly onFailed: (reason: string) => void
}

export type Tracing = {
  readonly worker: WorkerTracing
  readonly gateway: GatewayTracing
  /**
   * Resolves once all spans are exported or their export has failed. This may take as long as an export.
   * Never rejects.
   */
  stop(): Promise<void>
}

/**
 * Loads and starts OpenTelemetry's SDK. No other module of Sluice imports the SDK, so a process without
 * tracing never loads it. Sets no global tracer and no global context. Contexts are passed on explicitly.
 */
export function startTracing(options: StartTracingOptions): Tracing {
  const { settings, serviceName, serviceVersion, groupId, isForwarded, onSpans, onFailed } = options
  const own = resourceFromAttributes({ 'service.name': serviceName, 'service.version': serviceVersion })
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(own)
      .merge(detectResources({ detectors: [envDetector] })),
    sampler: samplerOf(settings.sampler),
    spanProcessors: [countedExport({ ...settings, exporter: new OTLPTraceExporter(), onSpans, onFailed })],
  })
  const tracer = provider.getTracer('sluice', serviceVersion)
  return {
    worker: createWorkerTracing({ tracer, groupId, isForwarded }),
    gateway: createGatewayTracing(tracer),
    // The error is ignored here, because a failed export is reported together with its spans.
    stop: () => provider.shutdown().catch(() => undefined),
  }
}

function samplerOf({ isParentBased, root, ratio }: TraceSampler): Sampler {
  const sampler = rootSampler(root, ratio)
  return isParentBased ? new ParentBasedSampler({ root: sampler }) : sampler
}

function rootSampler(root: TraceSampler['root'], ratio: number): Sampler {
  switch (root) {
    case 'always_on':
      return new AlwaysOnSampler()
    case 'always_off':
      return new AlwaysOffSampler()
    case 'traceidratio':
      return new TraceIdRatioBasedSampler(ratio)
  }
}
