import { setTimeout as passTime } from 'node:timers/promises'
import { until } from './until.ts'
import type { LogLine, SluiceProcess } from './sluice-process.ts'

/**
 * A change in the group. A join lasts until the worker is ready. A leave lasts until its process has ended.
 */
export type Change = {
  kind: 'join' | 'leave' | 'kill' | 'freeze' | 'pause'
  worker: string
  /** Start of the change, in epoch milliseconds. `toMs` is its end, and is `Infinity` until then. */
  fromMs: number
  toMs: number
}

export type ChangeKind = Change['kind'] | 'replace'

type Start = (name: string, program?: string) => Promise<SluiceProcess>

type Member = { name: string; process: SluiceProcess; state: 'awake' | 'frozen' | 'leaving' }

const backMs = 90_000
/**
 * The longest time for a worker's leave, in milliseconds. It is longer than the time limit that a worker sets
 * for its own end. A worker that takes longer is killed, and its `leave` throws.
 */
const mostLeaveMs = 40_000

/** A consumer group whose worker processes join and leave. Records each change with its times. */
export class ChangingGroup {
  readonly changes: Change[] = []
  /** The log of each worker that has joined so far, by the worker's name. */
  readonly #logs = new Map<string, readonly LogLine[]>()
  readonly #start: Start
  readonly #isBack: (worker: SluiceProcess, logged: number) => boolean | Promise<boolean>
  readonly #members = new Set<Member>()
  readonly #thawing: Promise<void>[] = []
  readonly #joining = new Set<Promise<void>>()
  #joins = 0

  /**
   * `start` starts a worker of that name and resolves when the worker is ready. `program` is the program to
   * run, if it isn't the program under test. `isBack` tells whether a worker that was frozen has come back.
   * By default, a worker is back when it has joined the group again. `logged` is the number of lines that the
   * worker had logged before it was thawed.
   */
  constructor({
    start,
    isBack = hasJoined,
  }: {
    start: Start
    isBack?: (worker: SluiceProcess, logged: number) => boolean | Promise<boolean>
  }) {
    this.#start = start
    this.#isBack = isBack
  }

  /** The number of workers that run, including frozen and leaving ones. */
  get size(): number {
    return this.#members.size
  }

  /** The number of workers that run and are neither frozen nor leaving. */
  get awake(): number {
    return this.#awake().length
  }

  /**
   * The log of each worker that has joined so far, by the worker's name. Includes workers that have ended.
   */
  get logs(): ReadonlyMap<string, readonly LogLine[]> {
    return this.#logs
  }

  /**
   * Starts a worker, waits until it is ready, and returns its name. `program`: the program to run, if it
   * isn't the program under test.
   */
  async join(program?: string): Promise<string> {
    const name = `w${++this.#joins}`
    const joined = this.#timed('join', name, async () => {
      const process = await this.#start(name, program)
      this.#logs.set(name, process.log)
      this.#members.add({ name, process, state: 'awake' })
    }).finally(() => this.#joining.delete(joined))
    this.#joining.add(joined)
    await joined
    return name
  }

  /** Ends a worker with SIGTERM. Throws if its exit code isn't 0. */
  async leave(pick: number): Promise<void> {
    const member = this.#pick(pick)
    member.state = 'leaving'
    await this.#timed('leave', member.name, async () => {
      const timer = setTimeout(() => void member.process.kill(), mostLeaveMs)
      const { code, tookMs } = await member.process.terminate()
      clearTimeout(timer)
      this.#members.delete(member)
      if (code !== 0) throw new Error(`${member.name} ended with ${code} after ${tookMs} ms${tail(member)}`)
    })
  }

  /** Ends a worker with SIGTERM and starts another at the same time. Returns the name of the new worker. */
  async replace(pick: number, program?: string): Promise<string> {
    const [, name] = await Promise.all([this.leave(pick), this.join(program)])
    return name
  }

  /** Kills a worker with SIGKILL (`kill -9`). */
  async kill(pick: number): Promise<void> {
    const member = this.#pick(pick)
    member.state = 'leaving'
    await this.#timed('kill', member.name, () => member.process.kill())
    this.#members.delete(member)
  }

  /**
   * Sends SIGSTOP to a worker, and SIGCONT after `forMs`. Returns at once. The recorded change lasts until
   * the worker is back.
   */
  freeze(pick: number, forMs: number): void {
    this.#halt('freeze', pick, forMs)
  }

  /**
   * Does the same as `freeze`, for a time so short that the worker's session doesn't end. The recorded change
   * lasts `forMs`.
   */
  pause(pick: number, forMs: number): void {
    this.#halt('pause', pick, forMs)
  }

  /**
   * Resolves when no worker is frozen any more, and all workers that `freeze` froze are back. Rejects if one
   * of them doesn't come back.
   */
  async thaw(): Promise<void> {
    await Promise.all(this.#thawing)
  }

  /** Throws if a worker has ended although the test didn't end it. */
  refuseLosses(): void {
    for (const member of this.#members) {
      if (!member.process.isRunning) throw new Error(`${member.name} has ended by itself${tail(member)}`)
    }
  }

  /**
   * Returns the lines about joins, and all lines whose level isn't `info`, that the workers have logged, in
   * order of time.
   */
  log(): { ms: number; text: string }[] {
    const lines = [...this.#logs].flatMap(([name, log]) =>
      log
        .filter(({ msg, level }) => msg === 'joined the group' || level !== 'info')
        .map(({ time, level, msg, ...fields }) => ({
          ms: Date.parse(String(time)),
          text: `${name} ${level} ${msg} ${JSON.stringify(fields)}`,
        })),
    )
    return lines.toSorted((a, b) => a.ms - b.ms)
  }

  /** Ends all workers with SIGTERM, one after the other. */
  async close(): Promise<void> {
    while (this.#members.size > 0) await this.leave(0)
  }

  /** Kills all workers that still run, including frozen ones. */
  async destroy(): Promise<void> {
    await Promise.allSettled(this.#joining)
    const running = [...this.#members].filter((member) => member.process.isRunning)
    await Promise.all(running.map((member) => member.process.kill()))
    await Promise.allSettled(this.#thawing)
  }

  #halt(kind: 'freeze' | 'pause', pick: number, forMs: number): void {
    const member = this.#pick(pick)
    const { name, process: worker } = member
    member.state = 'frozen'
    const thawed = this.#timed(kind, name, async () => {
      process.kill(worker.pid, 'SIGSTOP')
      await passTime(forMs)
      if (!worker.isRunning) return
      const logged = worker.log.length
      process.kill(worker.pid, 'SIGCONT')
      member.state = 'awake'
      if (kind === 'pause') return
      const isBack = async () => !worker.isRunning || (await this.#isBack(worker, logged))
      await until(`${name} is back`, isBack, { timeoutMs: backMs })
    })
    // `thaw` reports this error.
    thawed.catch(() => undefined)
    this.#thawing.push(thawed)
  }

  #awake(): Member[] {
    return [...this.#members].filter(({ state }) => state === 'awake')
  }

  #pick(pick: number): Member {
    const awake = this.#awake()
    const member = awake[pick % awake.length]
    if (member === undefined) throw new Error('there is no worker to pick')
    return member
  }

  async #timed(kind: Change['kind'], worker: string, work: () => Promise<void>): Promise<void> {
    const change = { kind, worker, fromMs: Date.now(), toMs: Infinity }
    this.changes.push(change)
    await work()
    change.toMs = Date.now()
  }
}

function hasJoined({ log }: SluiceProcess, logged: number): boolean {
  return log.slice(logged).some(({ msg }) => msg === 'joined the group')
}

function tail({ process }: Member): string {
  return process.log
    .slice(-10)
    .map((line) => `\n  ${JSON.stringify(line)}`)
    .join('')
}
