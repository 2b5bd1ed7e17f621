import * as fc from 'fast-check'

const resources = fc.constantFrom(
  { requests: { cpu: '2', memory: '1Gi' }, limits: { cpu: '2', memory: '2Gi' } },
  { requests: { cpu: '500m' } },
  {},
)
const labels = fc.constantFrom({}, { team: 'data' }, { 'example.org/cost': 'a-1' })
const peers = fc.constantFrom([], [{ podSelector: { matchLabels: { app: 'prometheus' } } }])

/**
 * Random values that the chart has to accept. Each set of values has to work for a new release, and for an
 * upgrade from the previous set. So a set holds only values that an upgrade can change in place.
 */
export const someValues = fc.record(
  {
    fullnameOverride: fc.constantFrom('', 'another'),
    commonLabels: labels,
    shutdownTimeout: fc.constantFrom('10s', '1m', '1500ms'),
    settings: fc.constantFrom({}, { SLUICE_DELIVERY_TIMEOUT: '3s', SLUICE_LOG_ATTEMPTS: false }),
    extraEnv: fc.constantFrom(
      [],
      [{ name: 'TZ', value: 'UTC' }],
      [{ name: 'OTEL_EXPORTER_OTLP_ENDPOINT', value: 'http://collector:4318' }],
    ),
    listenHost: fc.constantFrom('0.0.0.0', '::'),
    extraVolumes: fc.constantFrom([], [{ name: 'more', emptyDir: {} }]),
    imagePullSecrets: fc.constantFrom([], ['registry-login']),
    topics: fc.record(
      {
        apply: fc.boolean(),
        partitions: fc.constantFrom(1, 12, 48),
        podAnnotations: fc.constantFrom({}, { 'sidecar.istio.io/inject': 'false' }),
        tolerations: fc.constantFrom([], [{ key: 'pool', operator: 'Exists' }]),
      },
      { noNullPrototype: true },
    ),
    serviceAccount: fc.constantFrom({ create: true }, { create: false }, { create: false, name: 'ours' }),
    registry: fc.constantFrom({}, { url: 'https://registry.example', existingSecret: 'registry-login' }),
    proxy: fc.constantFrom({}, { existingSecret: 'proxy-url' }),
    trustedCertificates: fc.constantFrom({}, { existingConfigMap: 'company-ca' }),
    catalog: fc.constantFrom(
      {},
      { existingConfigMap: 'our-catalog', variablesSecret: 'our-secrets' },
      { volume: { persistentVolumeClaim: { claimName: 'catalog' } } },
    ),
    kafka: fc.constantFrom(
      {},
      { ssl: true, tls: { existingSecret: 'kafka-tls', certKey: 'tls.crt', keyKey: 'tls.key' } },
      { ssl: true, sasl: { mechanism: 'scram-sha-512', existingSecret: 'kafka-login' } },
      { ssl: true, tls: { caSecret: 'kafka-ca' } },
      { ssl: true, sasl: { mechanism: 'oauthbearer', existingSecret: 'kafka-client' } },
    ),
    worker: fc.record(
      {
        replicas: fc.integer({ min: 1, max: 4 }),
        processes: fc.constantFrom('', 1, 3),
        resources,
        minReadySeconds: fc.constant(0),
        instanceIdPrefix: fc.constantFrom('', 'east-'),
        leaveOnStop: fc.constantFrom('', true, false),
        podDisruptionBudget: fc.constantFrom({ enabled: true, maxUnavailable: '25%' }, { enabled: false }),
        podLabels: labels,
        autoscaling: fc.constantFrom(
          { enabled: false },
          { enabled: true },
          {
            enabled: true,
            authenticationRef: { name: 'prometheus' },
            triggerMetadata: { authModes: 'bearer' },
          },
          { enabled: true, kind: 'hpa', maxReplicas: 5 },
        ),
      },
      { noNullPrototype: true },
    ),
    gateway: fc.record(
      {
        enabled: fc.boolean(),
        replicas: fc.integer({ min: 1, max: 3 }),
        maxSurge: fc.constantFrom(1, '25%'),
        resources,
        // LoadBalancer isn't among the types. Helm waits until a LoadBalancer has an address, and in these
        // tests it never gets one.
        service: fc.constantFrom({}, { type: 'NodePort' }, { port: 8080 }),
        ingress: fc.constantFrom(
          {},
          { enabled: true, className: 'nginx', hosts: ['a.example', '*.b.example'] },
        ),
        httpRoute: fc.constantFrom(
          {},
          { enabled: true, parentRefs: [{ name: 'public' }], hostnames: ['a.example'] },
        ),
        autoscaling: fc.constantFrom({}, { enabled: true, maxReplicas: 4 }),
      },
      { noNullPrototype: true },
    ),
    deliveryLog: fc.constantFrom(
      {},
      { existingSecret: 'delivery-log', userKeyKey: 'user-key' },
      { existingSecret: 'delivery-log', index: { enabled: true } },
    ),
    admin: fc.constantFrom({}, { enabled: true, tokens: { existingSecret: 'admin-tokens' } }),
    networkPolicy: fc.record(
      { enabled: fc.boolean(), metricsFrom: peers, gatewayFrom: peers, publicEgress: fc.boolean() },
      { noNullPrototype: true },
    ),
    metrics: fc.record(
      {
        serviceMonitor: fc.constantFrom({}, { enabled: true, labels: { release: 'prometheus' } }),
        prometheusRule: fc.constantFrom({}, { enabled: true }),
        dashboards: fc.constantFrom({}, { enabled: true }),
      },
      { noNullPrototype: true },
    ),
  },
  { noNullPrototype: true },
)
