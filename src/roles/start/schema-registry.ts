import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { LoginError } from '../../http/login-error.ts'
import { authorityReader, passwordReader } from '../../http/reread-file.ts'
import { createDecoder, type Decoder } from '../../schema-registry/decoder.ts'
import { refuseFramed } from '../../schema-registry/frame.ts'
import {
  type Arriving,
  createIntake,
  type Intake,
  type IntakeOptions,
} from '../../schema-registry/decoding-intake.ts'
import type { RegistryLogin } from '../../schema-registry/registry-request.ts'
import type { SchemaAnswer } from '../../schema-registry/schema-source.ts'
import type { WorkerMetrics } from '../../telemetry/worker-metrics.ts'
import type { CountedSeries } from '../../telemetry/metric-tally.ts'
import { StartError } from './start-error.ts'

/**
 * Opens the intake between the consumer and the parts that take plain JSON. The intake decodes framed values,
 * which begin with a schema id, with the schemas of the configured registry.
 */
export async function openIntake<R extends Arriving>({
  config,
  metrics,
  log,
  ...options
}: Omit<IntakeOptions<R>, 'decode' | 'lookAhead'> & {
  config: Config
  metrics: WorkerMetrics
  log: Logger
}): Promise<Intake<R>> {
  const decoder = await openDecoder(config, log, {
    onAnswer: answerCounter(metrics),
    onDown: (isDown) => metrics.registryDown.set(isDown ? 1 : 0),
  })
  const intake = createIntake<R>({
    ...options,
    decode: (value) => decoder.decode(value),
    lookAhead: (value) => decoder.lookAhead(value),
  })
  return {
    accept: (record, content) => intake.accept(record, content),
    letGoAbandoned: () => intake.letGoAbandoned(),
    stop() {
      decoder.stop()
      intake.stop()
    },
    get held() {
      return intake.held
    },
  }
}

/**
 * Opens a decoder of framed values, which asks the configured registry for the schemas. If no registry is
 * configured, the decoder refuses all framed values.
 */
export async function openDecoder(
  { registry }: Pick<Config, 'registry'>,
  log: Pick<Logger, 'info' | 'warn' | 'error'>,
  {
    onAnswer = () => undefined,
    onDown: tellDown = () => undefined,
  }: {
    onAnswer?: (kind: SchemaAnswer['kind']) => void
    onDown?: (isDown: boolean, why: string) => void
  } = {},
): Promise<Decoder> {
  const { url } = registry
  if (url === undefined) return { decode: () => noRegistry, lookAhead() {}, stop() {} }
  const login = loginOf(registry, (message) => log.warn({ registry: url }, message))
  // This is loaded only here, because its validator is large, and most installations have no registry.
  const { createSchemaSource } = await import('../../schema-registry/schema-source.ts')
  return createDecoder({
    source: createSchemaSource({ url, login, timeoutMs: registry.timeoutMs }),
    onAnswer,
    onDown(isDown, why) {
      tellDown(isDown, why)
      if (isDown)
        log.error(
          { registry: url, reason: why },
          'the schema registry gives no schema: partitions that need it wait',
        )
      else log.info({ registry: url }, 'the schema registry answers again')
    },
    now: () => performance.now(),
    pause: (ms, signal) => delay(ms, undefined, { signal }),
  })
}

const noRegistry = refuseFramed(
  'no_schema_registry',
  'Set registry.url (SLUICE_REGISTRY_URL), or send plain JSON: the value is framed for a schema registry (its first byte is 0), and none is configured.',
)

/**
 * Returns a function that reads the files with the login. The decoder calls this function for each lookup, so
 * a renewed certificate or password needs no restart.
 */
function loginOf(
  { username, password: given, passwordFile, caFile }: Config['registry'],
  onKept: (message: string) => void,
): () => RegistryLogin {
  try {
    const passwordSetting = 'registry.passwordFile (SLUICE_REGISTRY_PASSWORD_FILE)'
    const password = passwordReader(given, passwordFile, passwordSetting, onKept)
    const ca = authorityReader(caFile, onKept, 'registry.caFile (SLUICE_REGISTRY_CA_FILE)')
    return () => ({ authorization: authorizationOf(username, password()), ca: ca() })
  } catch (cause) {
    if (!(cause instanceof LoginError)) throw cause
    throw new StartError(cause.message, { cause })
  }
}

function authorizationOf(username: string | undefined, password: string | undefined): string | undefined {
  if (username === undefined || password === undefined) return undefined
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
}

/**
 * Returns a counter of the registry's answers. The series of the counter exist even without a registry,
 * because an alert needs a series that exists with 0.
 */
function answerCounter({ schemaLookups }: WorkerMetrics): (kind: SchemaAnswer['kind']) => void {
  const counted: Record<SchemaAnswer['kind'], CountedSeries> = {
    found: schemaLookups.series({ outcome: 'found' }),
    unknown: schemaLookups.series({ outcome: 'unknown' }),
    unusable: schemaLookups.series({ outcome: 'unusable' }),
    failed: schemaLookups.series({ outcome: 'failed' }),
  }
  return (kind) => counted[kind].inc()
}
