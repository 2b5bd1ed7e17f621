import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { BenchmarkFailure } from '../support/failure.ts'
import { say } from '../support/say.ts'
import { describe, measureByTurns, type MeasuredSender, type Measurement } from '../support/turns.ts'
import { senderFor } from '../worker/senders.ts'
import { destinations, inFlight, openSetting, type Place, type Setting } from '../worker/setting.ts'
import { type PeerName, peerNames } from './names.ts'
import { startTask, writeUrls } from './peer.ts'
import type { Program, ProgramName } from './programs.ts'

/**
 * The timeout of a request, as for the worker. It is long, because a suspended program doesn't read its
 * answers.
 */
const timeoutMs = 60_000

/**
 * Makes all programs deliver by turns, and returns all runs of each program. They deliver the same preloaded
 * topic, each to a separate receiver.
 */
export async function measureThroughput(
  programs: Readonly<Record<ProgramName, Program>>,
  { runs, messages, profileDir }: { runs: number; messages: number; profileDir: string | undefined },
): Promise<Map<PeerName, Measurement[]>> {
  const measured = new Map<PeerName, Measurement[]>(peerNames.map((name) => [name, []]))
  const setting = await openSetting({ messages, tls: false, report: say })
  try {
    const places = new Map<PeerName, Place>()
    for (const name of peerNames) places.set(name, await setting.openPlace(name))
    for (let run = 1; run <= runs; run++) {
      const senders = [...places].map(([name, place]) =>
        name === 'franz-go' || name === 'parallel-consumer'
          ? programSender(name, programs[name], setting, place)
          : senderFor(name, setting, place, { profileDir, processes: 1 }),
      )
      const of = await measureByTurns(senders, messages)
      for (const [name, all] of measured) {
        const measurement = of.get(name)
        if (measurement === undefined) throw new BenchmarkFailure(`${name} was not measured`)
        all.push(measurement)
        say(`run ${run}: ${name} ${describe(measurement)}`)
      }
    }
  } finally {
    await setting.close()
  }
  return measured
}

/** Returns a sender that runs a program. Each run reads the topic in a new consumer group. */
function programSender(
  name: ProgramName,
  program: Program,
  { brokers, topic }: Setting,
  { receiver, folder }: Place,
): MeasuredSender {
  const urlsFile = join(folder, 'urls')
  writeUrls(urlsFile, destinations, (number) => `${receiver.origin}/hook/${number}`)
  const group = `${topic}-${name}-${randomBytes(4).toString('hex')}`
  const outputFile = join(folder, `${name}.log`)
  return {
    name,
    receiver,
    secret: undefined,
    start: () => startTask(program, { brokers, topic, group, urlsFile, inFlight, timeoutMs, outputFile }),
    faultOf: async (sender) => (sender.output() === '' ? undefined : 'it complained'),
  }
}
