import { join } from 'node:path'
import process from 'node:process'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

// Tests start hundreds of processes. With this folder, a process doesn't compile code again that an earlier
// process has compiled.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules/.cache/node-compile')

/**
 * Small files whose tests take long. Sorted by size, these files would start last, and run when all other
 * files have ended.
 */
const slow = [
  'e2e/planted-secrets',
  'gateway/metrics',
  'delivery/deletions',
  'kafka/earlier-ladder',
  'kafka/group-fetch',
]

/**
 * Starts the slow files first. The other files follow, the largest first. So all workers end at about the
 * same time.
 */
class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))]
  }
}

function isSlow({ moduleId }: TestSpecification): boolean {
  return slow.some((name) => moduleId.endsWith(`${name}.test.ts`))
}

/** Tests that measure the memory of their own process. So no other file may have used the process before. */
const measuring = [
  'test/integration/delivery/{hook-pool,hostile-answers,left-behind,resumed-sessions}.test.ts',
]

/**
 * Tests that compare CPU times. In a process that has run other files, code that these have left uncompiled or
 * compiled for other values takes up to twice as long, and a larger heap takes longer to collect.
 */
const comparing = ['test/unit/**/cost.test.ts', 'test/unit/costs/**/*.test.ts']

/**
 * Tests of a thing that another test shows in seconds, with every way in which processes, brokers or the
 * network can be lost beside it. They run before a release (`npm run test:long`).
 */
const long = 'test/*/long/**'

/**
 * The longest time of a test or a hook, in milliseconds. On a quiet machine, the longest test takes a sixth of this. A
 * test has no limit of its own: on a busy machine, even a folder that is deleted has taken ten seconds. Waits (`until`)
 * have their own, shorter limits.
 */
const mostMs = 300_000

/** Fails a file that doesn't show the lines of the log that it is said to show. */
const shownLines = 'test/support/shown-lines.ts'

/**
 * The projects (groups of tests). `unit` needs no Kafka. `costs` has the files of `comparing`, and `memory`
 * those of `measuring`. `quick` has the unit tests that take little time, and a smoke test. `quick`,
 * `integration`, `memory`, `e2e`, `long`, `package` and `clients` share one real Kafka, which
 * `test/support/global-kafka.ts` starts once. Each test uses topics that no other test uses.
 * `package` runs the tests of `e2e` with the package as npm installs it. `imports` checks the import map.
 * `deploy` checks the deployment files. `clients` runs published clients, which `npm run test:clients`
 * installs.
 */
export default defineConfig({
  test: {
    sequence: { sequencer: SlowFirst },
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          exclude: [...comparing, long],
          setupFiles: ['test/support/seed.ts', shownLines],
          // The files share processes and their loaded modules. Otherwise, a fifth of the CPU time would go
          // into loading modules again.
          isolate: false,
          // A test of a property runs it a thousand times, which takes seconds on a busy machine.
          testTimeout: mostMs,
          hookTimeout: mostMs,
          // Most of these tests only compute. The tests of `integration` and `e2e` wait half of the time. So they run
          // later, and four files at a time.
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          // A process of its own for each file. They run last, so that no other tests or checks run beside them.
          name: 'costs',
          include: comparing,
          setupFiles: ['test/support/seed.ts'],
          testTimeout: mostMs,
          hookTimeout: mostMs,
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          name: 'quick',
          include: ['test/unit/**/*.test.ts', 'test/e2e/smoke.test.ts'],
          // Each of these files takes seconds.
          exclude: [
            ...comparing,
            long,
            '**/*.model.test.ts',
            'test/unit/audience/unit/restore.test.ts',
            'test/unit/backfill/current-states.test.ts',
            'test/unit/bench/**',
            'test/unit/catalog/{file,json,parse,reader}.test.ts',
            'test/unit/commands/{full-disk,send-command,wrong-use}.test.ts',
            'test/unit/delivery-log/{folder-lock,index-threads}.test.ts',
            'test/unit/gateway/messages/scan-body.test.ts',
            'test/unit/kafka/{produce/lossy-producer,wire/record-batch}.test.ts',
            'test/unit/message/avro-schemas.test.ts',
            'test/unit/pipeline/omitted-hooks.test.ts',
            'test/unit/replay/job-run.test.ts',
            'test/unit/scripts/audit.test.ts',
            'test/unit/audience-files/{spool,sync}.test.ts',
          ],
          setupFiles: ['test/support/seed.ts', 'test/support/delete-topics.ts', shownLines],
          isolate: false,
          globalSetup: ['test/support/global-kafka.ts'],
          testTimeout: mostMs,
          hookTimeout: mostMs,
          maxWorkers: 3,
        },
      },
      {
        test: {
          name: 'imports',
          include: ['test/imports/**/*.test.ts'],
          testTimeout: mostMs,
          hookTimeout: mostMs,
        },
      },
      // Needs helm and promtool, which `npm run check:deploy` installs.
      {
        // helm and promtool run one after the other in each file.
        test: {
          name: 'deploy',
          include: ['test/deploy/**/*.test.ts'],
          // CI runs them beside others, with the CPU time that is left over.
          testTimeout: 2 * mostMs,
          hookTimeout: 2 * mostMs,
          maxWorkers: 2,
        },
      },
      {
        test: {
          name: 'integration',
          // As in `unit`, the files share processes. A new process for each file would take a second of CPU time.
          isolate: false,
          maxWorkers: 4,
          sequence: { groupOrder: 1 },
          include: ['test/integration/**/*.test.ts'],
          exclude: [...measuring, long],
          globalSetup: ['test/support/global-kafka.ts'],
          setupFiles: ['test/support/delete-topics.ts', shownLines],
          testTimeout: mostMs,
          hookTimeout: mostMs,
        },
      },
      {
        test: {
          name: 'memory',
          maxWorkers: 4,
          sequence: { groupOrder: 1 },
          include: measuring,
          globalSetup: ['test/support/global-kafka.ts'],
          setupFiles: ['test/support/delete-topics.ts', shownLines],
          testTimeout: mostMs,
          hookTimeout: mostMs,
        },
      },
      {
        test: {
          name: 'e2e',
          isolate: false,
          maxWorkers: 4,
          sequence: { groupOrder: 1 },
          include: ['test/e2e/**/*.test.ts'],
          exclude: [long],
          globalSetup: ['test/support/global-kafka.ts'],
          setupFiles: ['test/support/delete-topics.ts', shownLines],
          testTimeout: mostMs,
          hookTimeout: mostMs,
        },
      },
      {
        test: {
          name: 'long',
          // The project `package` runs those of test/e2e/long.
          include: ['test/{fault,fuzz}/**/*.test.ts', 'test/{unit,integration}/long/**/*.test.ts'],
          globalSetup: ['test/support/global-kafka.ts'],
          setupFiles: ['test/support/seed.ts', 'test/support/delete-topics.ts', shownLines],
          testTimeout: 4 * mostMs,
          hookTimeout: mostMs,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: 'package',
          // The tests of `e2e`. They run the build as npm installs it from the tarball.
          include: ['test/e2e/**/*.test.ts'],
          globalSetup: ['test/support/global-kafka.ts', 'test/support/global-package.ts'],
          setupFiles: [shownLines],
          testTimeout: mostMs,
          hookTimeout: mostMs,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: 'clients',
          include: ['test/clients/**/*.test.ts'],
          globalSetup: ['test/support/global-kafka.ts'],
          setupFiles: [shownLines],
          testTimeout: mostMs,
          hookTimeout: mostMs,
          fileParallelism: false,
        },
      },
    ],
  },
})
