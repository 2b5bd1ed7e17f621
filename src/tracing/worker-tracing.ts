import { type Context, ROOT_CONTEXT, SpanKind, SpanStatusCode } from '@opentelemetry/api'
import type { HeldRecord } from '../message/held-record.ts'
import type { Delivery } from '../pipeline/delivery.ts'
import type { PipelineObserver } from '../pipeline/pipeline-ports.ts'
import type { PipelineTracing } from '../pipeline/pipeline-ports.ts'
import { formatWait } from '../retry/duration.ts'
import { type Carrier, contextIn, headersOf } from './carrier.ts'
import { DeliverySpan, type DeliverySpanOptions, traceDelivery } from './delivery-span.ts'
import { names } from './names.ts'

/** The tracing of a worker. Each delivery is a span that continues the trace of its record. */
export type WorkerTracing = PipelineTracing & {
  /** Notes the trace of a record from Kafka, if its headers name a trace. */
  received(record: HeldRecord, headers: Carrier | undefined): void
  /** An observer that adds the events of deliveries to their spans. */
  readonly observer: Partial<PipelineObserver>
}

export function createWorkerTracing(options: DeliverySpanOptions): WorkerTracing {
  /** The traces of records whose headers name a trace. */
  const parents = new WeakMap<HeldRecord, Context>()
  const parentOf = (record: HeldRecord): Context => parents.get(record) ?? ROOT_CONTEXT

  function refused({ topic, partition, offset }: HeldRecord, parent: Context, reason: string): void {
    const attributes = {
      [names.system]: 'kafka',
      [names.operation]: 'process',
      [names.operationType]: 'process',
      [names.topic]: topic,
      [names.partition]: String(partition),
      [names.offset]: offset,
      [names.group]: options.groupId,
      [names.errorType]: reason,
    }
    const span = options.tracer.startSpan(`process ${topic}`, { kind: SpanKind.CONSUMER, attributes }, parent)
    span.setStatus({ code: SpanStatusCode.ERROR }).end()
  }

  return {
    received(record, headers) {
      const context = contextIn(headers)
      if (context !== ROOT_CONTEXT) parents.set(record, context)
    },
    begin: (delivery) => traceDelivery(options, delivery, parentOf(delivery.pending.record)),
    headersOf: (record) => headersOf(parentOf(record)),
    observer: {
      attempted: (delivery, result) => spanOf(delivery)?.answered(result),
      delivered: (delivery) => spanOf(delivery)?.tell('delivered', {}),
      omitted: (delivery, hookId, why) =>
        spanOf(delivery)?.tell('omitted', { [names.hook]: hookId, [names.reason]: why }),
      parked: (delivery, why, waitMs) =>
        spanOf(delivery)?.tell('parked', {
          [names.reason]: why,
          [names.tier]: formatWait(waitMs),
          [names.due]: new Date(Date.now() + waitMs).toISOString(),
        }),
      deadLettered(reason, _detail, where, delivery) {
        if (delivery === undefined) refused(where, parentOf(where), reason)
        else {
          spanOf(delivery)?.tell('dead letter', { [names.reason]: reason })
          spanOf(delivery)?.failed(reason)
        }
      },
      dropped: (delivery, why) => spanOf(delivery)?.tell('dropped', { [names.reason]: why }),
    },
  }
}

function spanOf({ trace }: Delivery): DeliverySpan | undefined {
  return trace instanceof DeliverySpan ? trace : undefined
}
