import { type ChildProcess, fork } from 'node:child_process'
import process from 'node:process'
import { semiSpaceFlag } from '../start/garbage-collector.ts'
import { type Answers, type Failure, isReport, type Question, type Report } from './process-link.ts'

/** How a process ended, with the failure that the process reported before its end. */
export type Ending = { code: number | null; signal: NodeJS.Signals | null; failure: Failure | undefined }

export type ProcessAnswer<T> = { ok: true; answer: T } | { ok: false; reason: string }

type Waiting = (answered: ProcessAnswer<Answers[keyof Answers]>) => void

/** A forked process of a worker, from its primary's view. It runs this program with the same arguments. */
export class WorkerProcess {
  /** The number of the process, from 1. */
  readonly number: number
  /** Resolves once the worker in the process has started. Stays pending if the process ends before that. */
  readonly started: Promise<void>
  readonly ended: Promise<Ending>
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, Waiting>()
  #hasStarted = false
  #hasEnded = false
  #failure: Failure | undefined
  #lastId = 0

  constructor(number: number) {
    this.number = number
    const [, entry = '', ...args] = process.argv
    this.#child = fork(entry, [...args, '--process-number', String(number)], {
      execArgv: [...process.execArgv, semiSpaceFlag],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    const started = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<Ending>()
    this.started = started.promise
    this.ended = ended.promise
    this.#child.on('message', (message: unknown) => {
      if (isReport(message)) this.#take(message, started.resolve)
    })
    // The process could not be started or reached. If the process could not be started, the event `close`
    // doesn't follow, so the end of the process is noted here.
    this.#child.on('error', ({ message, stack = '' }) => {
      this.#failure ??= { message, stack, isStartError: false }
      if (this.#child.pid === undefined) this.#end({ code: null, signal: null }, ended.resolve)
    })
    // This listens to `close` and not to `exit`, so that the last reports of the process are read before its
    // end is noted.
    this.#child.on('close', (code, signal) => this.#end({ code, signal }, ended.resolve))
  }

  /** The name of the process in messages, such as `process 2 (pid 4711)`. */
  get name(): string {
    return `process ${this.number} (pid ${this.#child.pid ?? 'none'})`
  }

  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** Asks the process a question. Gives up after `timeoutMs`. Never rejects. */
  async ask<Ask extends keyof Answers>(ask: Ask, timeoutMs: number): Promise<ProcessAnswer<Answers[Ask]>> {
    if (this.#hasEnded) return this.#refusal('has ended')
    if (!this.#hasStarted) return this.#refusal('is starting')
    const id = ++this.#lastId
    const { promise, resolve } = Promise.withResolvers<ProcessAnswer<Answers[keyof Answers]>>()
    this.#waiting.set(id, resolve)
    const timer = setTimeout(() => resolve(this.#refusal(`did not answer within ${timeoutMs} ms`)), timeoutMs)
    const question: Question = { id, ask }
    this.#child.send(question, (error) => {
      if (error !== null) resolve(this.#refusal(`can not be asked: ${error.message}`))
    })
    try {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the answer to the question of this id
      return (await promise) as ProcessAnswer<Answers[Ask]>
    } finally {
      clearTimeout(timer)
      this.#waiting.delete(id)
    }
  }

  /** True while the process can't answer only because it is still starting. */
  get isStarting(): boolean {
    return !this.#hasStarted && !this.#hasEnded
  }

  terminate(): void {
    this.#child.kill('SIGTERM')
  }

  /** Has the process examine itself, which it tells in its log. */
  examine(): void {
    // Before it has started, the signal would end the process.
    if (this.#hasStarted && !this.#hasEnded) this.#child.kill('SIGUSR2')
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }

  #take(report: Report, started: () => void): void {
    switch (report.tell) {
      case 'started':
        this.#hasStarted = true
        return started()
      case 'failed':
        this.#failure ??= report.failure
        return
      case 'answer':
        return this.#waiting.get(report.id)?.({ ok: true, answer: report.answer })
      case 'no answer':
        return this.#waiting.get(report.id)?.(this.#refusal(`can not answer: ${report.reason}`))
    }
  }

  #end(how: Omit<Ending, 'failure'>, ended: (ending: Ending) => void): void {
    this.#hasEnded = true
    for (const waiting of this.#waiting.values()) waiting(this.#refusal('has ended'))
    ended({ ...how, failure: this.#failure })
  }

  #refusal(what: string): { ok: false; reason: string } {
    return { ok: false, reason: `process ${this.number} ${what}` }
  }
}
