import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts } from '../../src/development/free-ports.ts'
import type { Identity } from './certificates.ts'
import { ensureCommands } from './debian.ts'
import { envoyArguments, envoyCommand, envoyConfig, writeListeners } from './envoy.ts'
import { until } from './until.ts'

/** A web server as customers have it, in front of a receiver. */
export type RealServer = {
  /** The origins by which the server is reached without and with TLS. */
  readonly http: string
  readonly https: string
  /**
   * Replaces the server's processes, or Envoy's listeners, as an administrator or a control plane does to
   * change the configuration.
   */
  reload(): void
  stop(): Promise<void>
}

export const realServers = ['nginx', 'HAProxy', 'Apache', 'Envoy'] as const
export type RealServerName = (typeof realServers)[number]

/** How long the servers keep an idle connection, in milliseconds. */
export const idleMs = 1_000

/** The largest body that nginx and Envoy take at the path `/small`, in bytes. */
export const smallBytes = 1_024

type Setup = { folder: string; plain: number; secure: number; receiver: number }

type Program = {
  /** The command, and the Debian package that has it. Envoy has no such package. */
  debian?: { command: string; package: string }
  args(file: string): string[]
  config(setup: Setup): string
  /** `version` is the number of reloads before, plus one. */
  reload(child: ChildProcess, setup: Setup, version: number): void
  /** Writes the files that the server needs beside its configuration. */
  prepare?(setup: Setup): void
}

const programs: Readonly<Record<RealServerName, Program>> = {
  nginx: {
    debian: { command: 'nginx', package: 'nginx-light' },
    args: (file) => ['-c', file, '-g', 'daemon off;'],
    reload: (child) => void child.kill('SIGHUP'),
    config: ({ folder, plain, secure, receiver }) => `
      user root; worker_processes 2; pid ${folder}/pid; error_log ${folder}/log;
      events { worker_connections 1024; }
      http {
        access_log off;
        keepalive_timeout ${idleMs}ms;
        upstream receiver { server 127.0.0.1:${receiver}; keepalive 32; }
        server {
          listen 127.0.0.1:${plain};
          listen 127.0.0.1:${secure} ssl;
          ssl_certificate ${folder}/cert.pem;
          ssl_certificate_key ${folder}/key.pem;
          proxy_http_version 1.1;
          proxy_set_header Connection "";
          location / { proxy_pass http://receiver; }
          location /small { client_max_body_size ${smallBytes}; proxy_pass http://receiver; }
        }
      }`,
  },
  HAProxy: {
    debian: { command: 'haproxy', package: 'haproxy' },
    args: (file) => ['-W', '-db', '-f', file],
    reload: (child) => void child.kill('SIGUSR2'),
    config: ({ folder, plain, secure, receiver }) => `
global
  stats socket ${folder}/socket mode 600 level admin expose-fd listeners
defaults
  mode http
  timeout connect 5s
  timeout client 50s
  timeout server 50s
  timeout http-keep-alive ${idleMs}ms
frontend customer
  bind 127.0.0.1:${plain}
  bind 127.0.0.1:${secure} ssl crt ${folder}/both.pem
  default_backend receivers
backend receivers
  server receiver 127.0.0.1:${receiver}
`,
  },
  Apache: {
    debian: { command: 'apache2', package: 'apache2-bin' },
    args: (file) => ['-f', file, '-D', 'FOREGROUND'],
    reload: (child) => void child.kill('SIGUSR1'),
    config: ({ folder, plain, secure, receiver }) => `
ServerRoot ${folder}
ServerName 127.0.0.1
PidFile ${folder}/pid
ErrorLog ${folder}/log
DefaultRuntimeDir ${folder}
Mutex file:${folder} default
Listen 127.0.0.1:${plain}
Listen 127.0.0.1:${secure}
${['mpm_event', 'authz_core', 'proxy', 'proxy_http', 'ssl', 'reqtimeout']
  .map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`)
  .join('\n')}
KeepAliveTimeout ${idleMs}ms
MaxKeepAliveRequests 100
ProxyPass / http://127.0.0.1:${receiver}/
<VirtualHost 127.0.0.1:${secure}>
  SSLEngine on
  SSLCertificateFile ${folder}/cert.pem
  SSLCertificateKeyFile ${folder}/key.pem
  ProxyPass / http://127.0.0.1:${receiver}/
</VirtualHost>
`,
  },
  Envoy: {
    args: envoyArguments,
    config: envoyConfig,
    prepare: (setup) => writeListeners({ ...setup, idleMs, smallBytes }, 0),
    reload: (_, setup, version) => writeListeners({ ...setup, idleMs, smallBytes }, version),
  },
}

/** Installs the servers that this machine lacks. They aren't started as services of the machine. */
export async function ensureRealServers(): Promise<void> {
  const needed = Object.values(programs).flatMap(({ debian }) => debian ?? [])
  ensureCommands(Object.fromEntries(needed.map((one) => [one.command, one.package])))
  await envoyCommand()
}

/** Starts a server that passes all requests to the receiver at the port `receiver` of 127.0.0.1. */
export async function startRealServer(
  name: RealServerName,
  receiver: number,
  identity: Identity,
): Promise<RealServer> {
  const program = programs[name]
  const folder = mkdtempSync(join(tmpdir(), 'real-server-'))
  const [plain = 0, secure = 0] = await freePorts(2)
  writeFileSync(join(folder, 'cert.pem'), identity.cert)
  writeFileSync(join(folder, 'key.pem'), identity.key)
  writeFileSync(join(folder, 'both.pem'), identity.cert + identity.key)
  const file = join(folder, 'config')
  const setup = { folder, plain, secure, receiver }
  writeFileSync(file, program.config(setup))
  program.prepare?.(setup)
  const command = program.debian?.command ?? (await envoyCommand())
  const child = spawn(command, program.args(file), { stdio: 'ignore' })
  let version = 0
  const exited = once(child, 'exit')
  for (const port of [plain, secure]) await until(`${name} listens`, () => canConnect(port))
  return {
    http: `http://127.0.0.1:${plain}`,
    https: `https://127.0.0.1:${secure}`,
    reload: () => program.reload(child, setup, ++version),
    async stop() {
      child.kill('SIGTERM')
      await exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function canConnect(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
