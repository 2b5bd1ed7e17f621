import { Socket } from 'node:net'
import type { buildConnector, Dispatcher } from 'undici'
import openTunnel from 'undici/lib/api/api-connect.js'
import Pool from 'undici/lib/dispatcher/pool.js'
import { judgeConnect } from './connect-answer.ts'
import {
  AddressNotAllowedError,
  NameNotResolvedError,
  ProxyFaultError,
  TargetUnreachableError,
} from './connect-error.ts'
import { createDialler } from './dialler.ts'
import { isFileShortage, codeOf } from './file-shortage.ts'
import type { NameResolver } from './resolver.ts'

type Opened = (...result: [null, Socket] | [Error, null]) => void

export type OutboundProxy = {
  /**
   * Opens a tunnel to an authority such as `example.com:443`. Fails with one of the errors of
   * `connect-error.ts`.
   */
  open(authority: string, opened: Opened): void
  /** Closes the connections that are not tunnels yet, and makes no more probes. */
  close(): Promise<void>
}

/**
 * The outcome of a request for a tunnel, also as the value of a metric label. `tunnel`: the tunnel opened.
 * `target`: the target failed. `fault`: the proxy failed for this target, or no file could be opened for a
 * connection. `down`: the proxy fails for every target.
 */
export type ConnectOutcome = 'tunnel' | 'target' | 'fault' | 'down'

export type ProxyOptions = {
  /** `http://user:password@proxy.example:3128` */
  url: string
  resolver: NameResolver
  /** The deadline of a request to a hook, in milliseconds. The tunnel must open well before this deadline. */
  timeoutMs: number
  onConnect?: (outcome: ConnectOutcome) => void
  /**
   * Called with `isDown` true when the proxy fails for every target, and with false when it works again. Send
   * nothing in between. `reason` contains no secrets.
   */
  onDown?: (isDown: boolean, reason: string) => void
}

/**
 * Time in milliseconds within which the proxy must accept a TCP connection. It is approximate, because
 * undici's timer counts in half seconds.
 */
const dialMs = 2_000
/**
 * The fraction of `timeoutMs` within which the proxy has to answer. It is less than 1 so that the request
 * still has time to end with an error that says whether the proxy or the target failed.
 */
const answerShare = 0.9
/** Time between two probes of a proxy that is down. */
const probeEveryMs = 1_000
/**
 * The target of a probe. Its name can't exist (RFC 6761, section 6.4). Any answer of the proxy shows that the
 * proxy works, unless it refuses our login.
 */
const probeAuthority = 'sluice.invalid:443'

/**
 * Creates an HTTP proxy client that opens a tunnel (CONNECT) to each hook.
 *
 * If the proxy itself fails, a tunnel fails with a `ProxyFaultError`. While the proxy is unreachable or
 * refuses our login, it counts as down. `onDown` is called once when the proxy goes down, and once when it
 * works again.
 */
export function createProxy(options: ProxyOptions): OutboundProxy {
  return new ConnectProxy(options)
}

class ConnectProxy implements OutboundProxy {
  readonly #pool: Pool
  readonly #login: readonly string[]
  readonly #answerMs: number
  readonly #onConnect: (outcome: ConnectOutcome) => void
  readonly #onDown: (isDown: boolean, reason: string) => void
  /** The time when the proxy last answered any request, on the clock of `performance.now()`. */
  #answeredMs = 0
  #isDown = false
  #probe: NodeJS.Timeout | undefined
  #isClosed = false

  constructor({
    url,
    resolver,
    timeoutMs,
    onConnect = () => undefined,
    onDown = () => undefined,
  }: ProxyOptions) {
    const { origin, username, password } = new URL(url)
    this.#login = loginOf(username, password)
    this.#answerMs = timeoutMs * answerShare
    this.#onConnect = onConnect
    this.#onDown = onDown
    this.#pool = new Pool(origin, {
      connect: createProxyConnector(resolver, Math.min(dialMs, timeoutMs)),
      pipelining: 1,
      allowH2: false,
      headersTimeout: 0,
      bodyTimeout: 0,
    })
  }

  open(authority: string, opened: Opened): void {
    this.#connect(authority, (...result) => {
      const [error] = result
      this.#onConnect(outcomeOf(error))
      if (error instanceof ProxyFaultError && error.isDown) this.#goDown(error.reason)
      opened(...result)
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#probe)
    await this.#pool.destroy()
  }

  #connect(authority: string, opened: Opened): void {
    const askedMs = performance.now()
    const giveUp = new AbortController()
    const timer = setTimeout(() => giveUp.abort(), this.#answerMs)
    const headers = ['Host', authority, ...this.#login]
    const request = { path: authority, headers, signal: giveUp.signal }
    openTunnel.call(this.#pool, request, (error, answer) => {
      clearTimeout(timer)
      if (error === null) this.#take(answer, authority, opened)
      else opened(this.#errorOf(error, giveUp.signal.aborted, askedMs), null)
    })
  }

  #take({ statusCode, headers, socket }: Dispatcher.ConnectData, authority: string, opened: Opened): void {
    this.#answeredMs = performance.now()
    const judged = judgeConnect(statusCode, headers)
    if (judged.kind === 'tunnel' && socket instanceof Socket) {
      opened(null, socket)
      return
    }
    socket.on('error', () => undefined).destroy()
    switch (judged.kind) {
      case 'target':
        opened(new TargetUnreachableError(judged.code), null)
        break
      case 'prohibited':
        opened(new AddressNotAllowedError(authority), null)
        break
      case 'fault':
        opened(new ProxyFaultError(judged.reason, judged), null)
        break
      case 'tunnel':
        throw new Error('undici gave a tunnel that is no socket')
    }
  }

  /**
   * Returns the error of a tunnel that didn't open. If no answer came in time, either the target or the proxy
   * is to blame. If the proxy has answered another request since this request was sent, the proxy works and
   * waits for the target, so the target is to blame. Otherwise the proxy is to blame.
   */
  #errorOf(error: Error, isLate: boolean, askedMs: number): Error {
    if (error instanceof ProxyFaultError || isFileShortage(codeOf(error))) return error
    if (!isLate) return new ProxyFaultError('CLOSED', { isDown: false })
    return this.#answeredMs > askedMs
      ? new TargetUnreachableError('ETIMEDOUT')
      : new ProxyFaultError('TIMEOUT', { isDown: false })
  }

  #goDown(reason: string): void {
    if (this.#isDown || this.#isClosed) return
    this.#isDown = true
    this.#onDown(true, reason)
    this.#lookAgain()
  }

  #lookAgain(): void {
    this.#connect(probeAuthority, (error, socket) => {
      socket?.destroy()
      if (this.#isClosed) return
      if (error instanceof ProxyFaultError && error.isDown) {
        this.#probe = setTimeout(() => this.#lookAgain(), probeEveryMs)
        return
      }
      this.#isDown = false
      this.#onDown(false, '')
    })
  }
}

/**
 * Creates a connector to the proxy. The connector checks no addresses, because the operator has configured
 * the proxy.
 */
function createProxyConnector(resolver: NameResolver, timeoutMs: number): buildConnector.connector {
  const dial = createDialler((name, dialled) => {
    resolver.resolve(name, (resolved) => {
      if (resolved.ok) dialled(null, resolved.addresses)
      else dialled(new NameNotResolvedError(name, resolved.code), [])
    })
  }, timeoutMs)
  return (options, callback) => {
    dial(options, (...result) => {
      const [error, socket] = result
      if (error === null) callback(null, socket)
      else if (isFileShortage(codeOf(error))) callback(error, null)
      else callback(new ProxyFaultError(codeOf(error), { isDown: true }), null)
    })
  }
}

function outcomeOf(error: Error | null): ConnectOutcome {
  if (error === null) return 'tunnel'
  if (isFileShortage(codeOf(error))) return 'fault'
  if (!(error instanceof ProxyFaultError)) return 'target'
  return error.isDown ? 'down' : 'fault'
}

function loginOf(username: string, password: string): readonly string[] {
  if (username === '' && password === '') return []
  const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return ['Proxy-Authorization', `Basic ${Buffer.from(login, 'utf8').toString('base64')}`]
}
