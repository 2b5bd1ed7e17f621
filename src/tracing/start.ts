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
import type { GatewayTracing } from '../gateway/request-tracing.ts'
import { countedExport, type SpanFate } from './counted-export.ts'
import { createGatewayTracing } from './request-span.ts'
import { createWorkerTracing, type WorkerTracing } from './worker-tracing.ts'

export type StartTracingOptions = {
  readonly settings: TracingSettings
  /** What the service is called where `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` don't say it. */
  readonly serviceName: string
  readonly serviceVersion: string
  readonly groupId: string
  /** Whether requests to endpoints name the trace. */
  readonly isForwarded: boolean
  readonly onSpans: (fate: SpanFate, count: number) => void
  readonly onFailed: (reason: string) => void
}

export type Tracing = {
  readonly worker: WorkerTracing
  readonly gateway: GatewayTracing
  /**
   * Resolves when all spans are exported, or their export has failed: that may take as long as an export.
   * Never rejects.
   */
  stop(): Promise<void>
}

/**
 * Loads and starts OpenTelemetry's SDK: nothing else of Sluice imports it, so that a process without tracing
 * never loads it. Nothing is registered globally, and contexts are passed on by hand.
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
    // Why an export has failed was told with its spans.
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
