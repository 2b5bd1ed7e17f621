import { setTimeout as sleep } from 'node:timers/promises'
import { switchOn } from './catalog.ts'
import { type Check, runChecks } from './checks.ts'
import { shownPath } from './folder.ts'
import { readDeadLetters, readLeftAtRest } from './kafka.ts'
import type { Lifetime } from './lifetime.ts'
import { type PlannedRecord, planRecords } from './messages.ts'
import { clock, type Picture, takePicture, tell } from './picture.ts'
import { replayErp } from './replay.ts'
import { openScreen } from './screen.ts'
import { bigSpenders, spaceId, times, writeKeyOf } from './script.ts'
import { setStage, type Stage } from './stage.ts'
import { drawHeading, drawTable, paint } from './table.ts'

const lookEveryMs = 500
const blockEveryMs = 5_000
const stayBlockEveryMs = 30_000
const restTimeoutMs = 15_000

const legend = [
  '',
  'sent: messages for that customer   waiting: on a retry topic, or under way',
  'dead: in the dead letters, with the reason   tries: requests that have ended',
  "signature ok: verified by the customer's server   answer: its last one",
  '',
]

/** Runs the whole demo. Resolves to true if every check has passed. */
export async function runDemo(lifetime: Lifetime, { stay }: { stay: boolean }): Promise<boolean> {
  console.log(`${paint('bold', 'Sluice: from Kafka to signed webhooks')}, in about a minute\n`)
  const stage = await setStage(lifetime)
  for (const line of legend) console.log(paint('dim', line))

  const records = planRecords(Date.now(), times.productionMs)
  const play: Play = {
    stage,
    lifetime,
    isPartnerOn: false,
    isAudienceDone: false,
    partnerRequestsWhilePaused: 0,
    partnerChange: 0,
  }
  stage.startClock()
  await lifetime.together([
    stage.upstream.write(records, lifetime.signal),
    switchPartnerOn(play),
    playAudience(play),
    watchUntilSettled(play, records),
  ])

  const checks = await lifetime.orEnd(checkAll(play, records))
  const { customers, settings } = stage
  const replayed = await lifetime.orEnd(replayErp({ customers, settings, signal: lifetime.signal }))
  const isRight = printSummary([...checks, ...replayed], stage.elapsedMs())
  if (stay) await stayUp(play)
  return isRight
}

type Play = {
  readonly stage: Stage
  readonly lifetime: Lifetime
  isPartnerOn: boolean
  isAudienceDone: boolean
  partnerRequestsWhilePaused: number
  /** The number of the change of the catalog that switched `partner` on. */
  partnerChange: number
}

async function switchPartnerOn(play: Play): Promise<void> {
  const { stage, lifetime } = play
  await sleep(times.partnerOnMs, undefined, { signal: lifetime.signal })
  play.partnerRequestsWhilePaused = stage.customers.all.get('partner')?.receiver.requests ?? 0
  play.partnerChange = await switchOn(stage.admin, 'partner')
  play.isPartnerOn = true
}

async function playAudience(play: Play): Promise<void> {
  const { stage, lifetime } = play
  const receiver = stage.customers.all.get('campaigns')?.receiver
  const arrived = (): number => receiver?.arrivals.size ?? 0
  await stage.audience.play({ elapsedMs: () => stage.elapsedMs(), arrived, signal: lifetime.signal })
  play.isAudienceDone = true
}

/**
 * Shows the live table until every message is delivered or dead, or the time is up. If the time is up, the
 * checks report what is missing.
 */
async function watchUntilSettled(play: Play, records: readonly PlannedRecord[]): Promise<void> {
  const refused = records.filter(({ fate }) => fate.kind === 'refused').length
  const isSettled = ({ written, rows, deadLetters }: Picture): boolean => {
    const dead = rows.reduce((sum, row) => sum + row.dead, 0)
    return (
      play.isPartnerOn &&
      play.isAudienceDone &&
      written === records.length &&
      rows.every(({ waiting }) => waiting === 0) &&
      deadLetters >= refused + dead
    )
  }
  await watch(play, {
    blockEveryMs,
    storyLines: 3,
    until: (picture) => isSettled(picture) || picture.elapsedMs > times.deadlineMs,
    stories: (picture) => {
      const stories = tell(picture, play)
      return stories.length > 0 ? stories : ['everything is settled.']
    },
  })
}

/** Draws a picture at the screen's interval until `until` returns true. The last picture is always drawn. */
async function watch(
  { stage, lifetime }: Play,
  options: {
    blockEveryMs: number
    until: (picture: Picture) => boolean
    stories: (picture: Picture) => readonly string[]
    /** The number of lines that are reserved for the stories. */
    storyLines: number
  },
): Promise<void> {
  const { customers, upstream, audience, worker, topicPrefix } = stage
  const screen = openScreen(options.blockEveryMs)
  try {
    for (let drawnAtMs = screen.isInPlace ? -Infinity : performance.now(); ;) {
      const metrics = await worker.metrics(lifetime.signal)
      const elapsedMs = stage.elapsedMs()
      const picture = takePicture({
        customers,
        upstream,
        audience,
        metrics,
        eventsTopic: `${topicPrefix}events`,
        elapsedMs,
      })
      const isLast = options.until(picture)
      if (isLast || performance.now() - drawnAtMs >= screen.everyMs - lookEveryMs / 2) {
        drawnAtMs = performance.now()
        const heading = drawHeading(elapsedMs, options.stories(picture), screen.width)
        const blanks = screen.isInPlace
          ? Array.from({ length: options.storyLines - heading.length }, () => '')
          : []
        screen.draw([...heading, ...blanks, '', ...drawTable(picture, screen.width)])
      }
      if (isLast) return
      await sleep(lookEveryMs, undefined, { signal: lifetime.signal })
    }
  } finally {
    screen.leave()
  }
}

async function checkAll(play: Play, records: readonly PlannedRecord[]): Promise<Check[]> {
  const { stage, lifetime, partnerRequestsWhilePaused, partnerChange } = play
  const { client, groupId, consumedTopics, topicPrefix, customers, worker, gateway } = stage
  const left = await readLeftAtRest(client, groupId, consumedTopics, restTimeoutMs, lifetime.signal)
  const deadLetters = await readDeadLetters(client, `${topicPrefix}dead-letters`)
  const metrics = await worker.metrics(lifetime.signal)
  const gatewayMetrics = await gateway.metrics(lifetime.signal)
  return runChecks({
    records,
    customers,
    deadLetters,
    left,
    metrics,
    gatewayMetrics,
    partnerRequestsWhilePaused,
    partnerChange,
  })
}

const shownFaults = 5

/** Prints the result of each check. Returns true if all checks have passed. */
function printSummary(checks: readonly Check[], elapsedMs: number): boolean {
  console.log('Checked:')
  for (const { about, found, faults } of checks) {
    const result = faults.length === 0 ? paint('green', 'ok    ') : paint('red', 'FAILED')
    console.log(`  ${result}  ${about.padEnd(13)}  ${found}`)
    for (const fault of faults.slice(0, shownFaults)) console.log(paint('red', `            - ${fault}`))
    if (faults.length > shownFaults) console.log(`            - and ${faults.length - shownFaults} more`)
  }
  const failed = checks.filter(({ faults }) => faults.length > 0).length
  const passed = checks.length - failed
  console.log(
    `\n${paint('bold', `${passed} passed, ${failed} failed`)}, ${clock(elapsedMs)} after the first message\n`,
  )
  return failed === 0
}

/** Sends a message each second and shows the live table, until Ctrl-C. */
async function stayUp(play: Play): Promise<void> {
  const { stage, lifetime } = play
  for (const line of stayNotice(stage)) console.log(line)
  await lifetime
    .together([
      stage.upstream.trickle(lifetime.signal),
      watch(play, {
        blockEveryMs: stayBlockEveryMs,
        storyLines: 1,
        until: () => false,
        stories: () => ['a message is sent each second. Ctrl-C stops everything.'],
      }),
    ])
    .catch((error: unknown) => {
      if (!lifetime.isInterrupted) throw error
    })
}

function stayNotice({ brokers, topicPrefix, worker, gateway, keysFile }: Stage): string[] {
  const prefix = topicPrefix === 'sluice.' ? '' : `SLUICE_KAFKA_TOPIC_PREFIX=${topicPrefix} `
  const message = `'{"type":"track","userId":"u1","event":"Hello"}'`
  const keys = shownPath(keysFile)
  const catalog = `SLUICE_CATALOG_SOURCE=topic SLUICE_CATALOG_KEYS_FILE=${keys}`
  return [
    'It stays up. Try, in another terminal:',
    `  curl ${gateway.gatewayUrl}/v1/track -u ${writeKeyOf('website')}: -d ${message}`,
    `  KAFKA_BROKERS=${brokers.join(',')} ${prefix}${catalog} npx sluice send --source website ${message}`,
    `  KAFKA_BROKERS=${brokers.join(',')} ${prefix}npx sluice audience change --space ${spaceId} --audience ${bigSpenders.id} --name '${bigSpenders.name}' --user u1 --member true`,
    `  curl ${worker.url}/metrics`,
    `  tail -f ${shownPath(worker.logFile)}`,
    `  KAFKA_BROKERS=${brokers.join(',')} ${prefix}${catalog} npx sluice destinations pause crm`,
    '',
  ]
}
