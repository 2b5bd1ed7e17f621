import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createToken } from '../../src/admin/tokens.ts'
import { BenchmarkFailure } from '../support/failure.ts'
import { type SenderProcess, startSender } from '../support/sender-process.ts'
import type { Scene } from '../support/stage.ts'
import { sluiceMain } from '../support/topics.ts'

/** The admin API and the index of the delivery log, in processes of their own, beside a worker. */
export type Installation = {
  /** The origin of the admin API. */
  readonly origin: string
  /** Signs in, and returns the cookie. */
  signIn(): Promise<string>
  readonly stop: () => Promise<void>
}

/** A token has at most 100 sessions. */
const sessionsOfToken = 100
const tokenCount = 3
const readyTimeoutMs = 60_000
const pollMs = 50

export async function startInstallation({ variables }: Scene, folder: string): Promise<Installation> {
  const made = Array.from({ length: tokenCount }, (_, index) => createToken(`bench-${index}`, 'admin'))
  const tokensFile = join(folder, 'tokens')
  writeFileSync(tokensFile, made.map(({ line }) => line).join('\n'))
  const all = {
    ...variables,
    SLUICE_ADMIN_TOKENS_FILE: tokensFile,
    SLUICE_ADMIN_PORT: '0',
    SLUICE_INDEX_PORT: '0',
    SLUICE_INDEX_FOLDER: join(folder, `log-${variables['SLUICE_KAFKA_TOPIC_PREFIX'] ?? ''}`),
  }
  const index = startSender([sluiceMain, 'log', 'serve'], {
    outputFile: join(folder, 'index.log'),
    variables: all,
  })
  await lineOf(index, 'log started')
  const admin = startSender([sluiceMain, 'admin'], { outputFile: join(folder, 'admin.log'), variables: all })
  const { adminPort } = await lineOf(admin, 'admin started')
  const origin = `http://127.0.0.1:${String(adminPort)}`
  let sessions = 0
  return {
    origin,
    async signIn() {
      const { token } = made[Math.floor(sessions++ / sessionsOfToken)] ?? made[0] ?? { token: '' }
      const response = await fetch(`${origin}/v1/session`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ token }),
      })
      if (response.status !== 204)
        throw new BenchmarkFailure(`no sign-in: ${response.status} ${await response.text()}`)
      return response.headers.getSetCookie()[0]?.split(';')[0] ?? ''
    },
    async stop() {
      await Promise.all([admin.stop(), index.stop()])
    },
  }
}

/** Waits for a line of the log, and returns its fields. */
async function lineOf(program: SenderProcess, message: string): Promise<Record<string, unknown>> {
  const deadlineMs = performance.now() + readyTimeoutMs
  for (;;) {
    const line = program
      .output()
      .split('\n')
      .find((one) => one.includes(`"msg":"${message}"`))
    if (line !== undefined) return JSON.parse(line)
    if (!program.isRunning || performance.now() > deadlineMs)
      throw new BenchmarkFailure(`${message}: this does not come:\n${program.output().slice(-2_000)}`)
    await delay(pollMs)
  }
}
