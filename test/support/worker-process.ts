import { inject, onTestFailed, TestRunner } from 'vitest'
import { readConfig } from '../../src/config/read.ts'
import { applyTopicTable } from '../../src/roles/operations/topic-table.ts'
import { type Ended, environmentOf, runProgram, type SluiceProcess, startProgram } from './sluice-process.ts'
import { quietLog } from './emitted-lines.ts'
import { testKafka } from './kafka.ts'

export {
  type CatalogData,
  type Ended,
  type LogLine,
  type SluiceProcess,
  writeCatalog,
} from './sluice-process.ts'

/**
 * Returns the environment of a test's process. `variables` (`SLUICE_…`) override the settings that all tests
 * share.
 */
function environment(variables: Record<string, string>): NodeJS.ProcessEnv {
  return environmentOf({
    SLUICE_STATE_FOLDER: inject('stateFolder'),
    SLUICE_INDEX_FOLDER: `${inject('stateFolder')}/log`,
    SLUICE_INDEX_PORT: '0',
    ...(usesSharedKafka(variables) && { SLUICE_GATEWAY_ACK_TIMEOUT: '20s' }),
    ...variables,
  })
}

/**
 * Returns true for a process at the Kafka that all tests share, which no test stops. On a busy machine, this Kafka has
 * taken longer than gateways wait by default, which is 1.5 s.
 */
function usesSharedKafka({ SLUICE_KAFKA_BROKERS: brokers }: Record<string, string>): boolean {
  return brokers === testKafka().join(',')
}

/**
 * Settings that workers don't read. Some tests run earlier versions of Sluice, which refuse settings that
 * they don't know.
 */
const ofOtherRoles: ReadonlySet<string> = new Set([
  'SLUICE_GATEWAY_ACK_TIMEOUT',
  'SLUICE_ADMIN_PORT',
  'SLUICE_INDEX_FOLDER',
  'SLUICE_INDEX_PORT',
])

function workerEnvironment(variables: Record<string, string>): NodeJS.ProcessEnv {
  const all = Object.entries(environment(variables))
  return Object.fromEntries(all.filter(([name]) => !ofOtherRoles.has(name) || name in variables))
}

/**
 * Runs a command until it ends, with any exit code. If `isRead` is false, nobody reads its standard output.
 * After `killAfterMs`, the command is killed with `kill -9` if it still runs.
 */
export async function runToEnd(
  args: readonly string[],
  variables: Record<string, string>,
  options: { input?: string; isRead?: boolean; killAfterMs?: number } = {},
): Promise<Ended> {
  return runProgram(inject('program'), args, { env: environment(variables), ...options })
}

/** Runs a command that ends, such as `topics apply`. Throws if its exit code isn't `expectedCode`. */
export async function runSluice(
  args: readonly string[],
  variables: Record<string, string>,
  { expectedCode = 0, input = '' } = {},
): Promise<{ stdout: string; stderr: string }> {
  const { code, stdout, stderr } = await runToEnd(args, variables, { input })
  if (code !== expectedCode)
    throw new Error(`sluice ${args.join(' ')} exited with ${code}:\n${stderr}${stdout}`)
  return { stdout, stderr }
}

/** Creates the topics as `sluice topics apply` does, but in the test's own process. */
export async function applyTopics(variables: Record<string, string>): Promise<void> {
  const read = readConfig({ env: environment(variables) })
  if (!read.ok) throw new Error(read.message)
  await applyTopicTable(read.config, quietLog)
}

/**
 * Starts `sluice worker` (or another role), and waits until it is ready. If `isUnready` is true, waits only
 * until its port is open.
 */
export async function startSluice(
  variables: Record<string, string>,
  {
    role = 'worker',
    // On a busy machine, a start has taken more than 30 s.
    readyMs = 120_000,
    isUnready = false,
    program = inject('program'),
    maxOpenFiles,
  }: {
    role?: string
    readyMs?: number
    isUnready?: boolean
    program?: string
    maxOpenFiles?: number
  } = {},
): Promise<SluiceProcess> {
  return startProgram(program, {
    role,
    env: role === 'worker' ? workerEnvironment(variables) : environment(variables),
    readyMs,
    isUnready,
    maxOpenFiles,
    onSpawned({ pid, said }) {
      // A process that is started outside of a test, for example in a hook, belongs to no test.
      if (TestRunner.getCurrentTest() === undefined) return
      onTestFailed(() => void process.stderr.write(`sluice ${role} (pid ${pid}) said:\n${said()}`))
    },
  })
}
