import { setTimeout as passTime } from 'node:timers/promises'
import { until } from './until.ts'
import type { LogLine, SluiceProcess } from './sluice-process.ts'

/** What happened to the group. A join lasts until the worker is ready, a leave until its process has ended. */
export type Change = {
  kind: 'join' | 'leave' | 'kill' | 'freeze' | 'pause'
  worker: string
  /** Epoch milliseconds. */
  fromMs: number
  toMs: number
}

export type ChangeKind = Change['kind'] | 'replace'

type Start = (name: string, program?: string) => Promise<SluiceProcess>

type Member = { name: string; process: SluiceProcess; state: 'awake' | 'frozen' | 'leaving' }

const backMs = 90_000
/** Three times what a worker gives itself; one that takes longer is killed, and that is an error. */
const mostLeaveMs = 30_000

/** Worker processes of one consumer group, that come and go; it writes down what happened when. */
export class ChangingGroup {
  readonly changes: Change[] = []
  /** Of each worker that ever was. */
  readonly #logs = new Map<string, readonly LogLine[]>()
  readonly #start: Start
  readonly #isBack: (worker: SluiceProcess, logged: number) => boolean | Promise<boolean>
  readonly #members = new Set<Member>()
  readonly #thawing: Promise<void>[] = []
  readonly #joining = new Set<Promise<void>>()
  #joins = 0

  /**
   * `start` starts the worker of that name, of another program where one is given, and resolves when it is ready. `isBack` tells whether one that was frozen has come back, by
   * default that it has joined again; `logged` is how many lines it had logged when it was thawed.
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

  /** Workers that run, the frozen ones too. */
  get size(): number {
    return this.#members.size
  }

  /** Workers that run and are not frozen. */
  get awake(): number {
    return this.#awake().length
  }

  /** What each worker that ever was has logged, by its name. */
  get logs(): ReadonlyMap<string, readonly LogLine[]> {
    return this.#logs
  }

  /** Gives its name. `program`: what it runs, where that isn't this one. */
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

  /** SIGTERM. Throws when that didn't end it well. */
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

  /** One ends by SIGTERM while another starts, whose name it gives. */
  async replace(pick: number, program?: string): Promise<string> {
    const [, name] = await Promise.all([this.leave(pick), this.join(program)])
    return name
  }

  /** `kill -9`. */
  async kill(pick: number): Promise<void> {
    const member = this.#pick(pick)
    member.state = 'leaving'
    await this.#timed('kill', member.name, () => member.process.kill())
    this.#members.delete(member)
  }

  /** SIGSTOP, and SIGCONT when `forMs` have passed; comes back at once. It lasts until the worker is back. */
  freeze(pick: number, forMs: number): void {
    this.#halt('freeze', pick, forMs)
  }

  /** The same for so short that its session goes on: it lasts as long. */
  pause(pick: number, forMs: number): void {
    this.#halt('pause', pick, forMs)
  }

  /** Resolves when nobody is frozen any more, and all that were have joined again. */
  async thaw(): Promise<void> {
    await Promise.all(this.#thawing)
  }

  /** Throws when a worker has ended that nobody ended. */
  refuseLosses(): void {
    for (const member of this.#members) {
      if (!member.process.isRunning) throw new Error(`${member.name} has ended by itself${tail(member)}`)
    }
  }

  /** What all workers have logged of their joins and of trouble, in order. */
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

  /** Ends all by SIGTERM. */
  async close(): Promise<void> {
    while (this.#members.size > 0) await this.leave(0)
  }

  /** Ends what still runs, in whatever state. */
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
    // Told by `thaw`.
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
