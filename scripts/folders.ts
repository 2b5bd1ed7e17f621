/** A sub-folder of a folder of `src`. */
export type Room = {
  /** One line about the sub-folder, for a newcomer. */
  readonly about: string
  /**
   * The sub-folders of the same folder that this one may import from. `.` stands for the files that are
   * directly in the folder. Each of them stands further up in the list, so imports form no cycle.
   */
  readonly imports: readonly string[]
}

/** A folder of `src`, for the import map and for `docs/architecture.md`. */
export type Folder = {
  /** One line about the folder, for a newcomer. */
  readonly about: string
  /** The folders that this folder may import from. Imports form no cycle. */
  readonly imports: readonly string[]
  /** `true` if the folder's code opens no socket, uses no file and doesn't ask the system for the time. */
  readonly isPure?: true
  /** Packages that no other folder may import. `@scope` stands for all packages of the scope. */
  readonly packages?: readonly string[]
  /**
   * The sub-folders by name, from the lowest to the highest. `.` stands for the files that are directly in
   * the folder, if there are any. Absent if the folder has no sub-folders.
   */
  readonly rooms?: Readonly<Record<string, Room>>
  /** The only files of this folder that other folders may import. Absent if they may import each file. */
  readonly doors?: readonly string[]
}

/** The folders of the parts. A folder may import only the folders and packages that its entry names. */
const parts: Readonly<Record<string, Folder>> = {
  message: {
    about: "a message's canonical form, limits, schemas and partition; the record that it came with",
    imports: [],
    isPure: true,
    rooms: {
      json: {
        about: 'JSON as bytes and as text: skipped, outlined, spelled as JSON.stringify spells it',
        imports: [],
      },
      '.': {
        about: 'messages, their records and headers; `enter.ts` makes the canonical form',
        imports: ['json'],
      },
    },
  },
  conditions: {
    about: "conditions on messages in CEL, and their translation from Segment's filter language",
    imports: ['message'],
    isPure: true,
    packages: ['@marcbachmann/cel-js'],
  },
  shape: {
    about: "requests that mappings make of messages, in the form of Segment's mapping-kit",
    imports: ['conditions', 'message'],
    isPure: true,
  },
  routing: {
    about: 'source and message → deliveries',
    imports: ['message', 'conditions', 'shape'],
    isPure: true,
  },
  retry: {
    about: "the ladder of waits, and a delivery's state in the headers of its record",
    imports: ['message'],
    isPure: true,
  },
  async: {
    about: 'waits with an end, token buckets, and queues in memory: for one partition, or one at a time',
    imports: [],
  },
  secrets: {
    about: 'finds the secrets of a request in an answer, and masks them',
    imports: [],
    isPure: true,
  },
  repeats: { about: 'recognizes messages that came before', imports: [], isPure: true },
  address: { about: 'decides which addresses are public or allowed', imports: [], isPure: true },
  http: {
    about:
      'what all HTTP of ours needs: `node:http` at little cost, answers up to a size limit, logins from files',
    imports: ['address'],
  },
  config: {
    about: 'one table of settings; the one reader of the environment',
    imports: ['catalog', 'message', 'retry'],
  },
  catalog: {
    about: 'sources and destinations: a file, its rules, and a live view',
    imports: ['address', 'async', 'http', 'message', 'retry', 'conditions', 'shape'],
    rooms: {
      features: {
        about: 'fields of a destination with rules of their own',
        imports: [],
      },
      '.': {
        about: 'a text with its faults, the catalog that it becomes, its next version, and differences',
        imports: ['features'],
      },
      file: {
        about: 'the file or the folder of a catalog: read as a whole, followed, with variables in files',
        imports: ['.'],
      },
    },
  },
  'segment-import': {
    about: "a catalog of what Segment's Public API says about the webhooks of a workspace",
    imports: ['catalog', 'conditions'],
  },
  delivery: {
    about: 'lanes, breakers, connections, deadlines, names, proxy, signatures, verdicts',
    imports: ['address', 'async', 'catalog', 'http', 'secrets', 'shape'],
    packages: ['undici'],
    rooms: {
      outcomes: {
        about: 'what came of a request, and the verdict on it',
        imports: [],
      },
      connect: {
        about: 'names, addresses that are allowed, TLS and the proxy: from a URL to a connection',
        imports: [],
      },
      batch: {
        about: 'several messages in one request: its body, what its answer says of each, and halves of it',
        imports: ['outcomes'],
      },
      lanes: {
        about: 'how deliveries line up: queues, turns, breakers, the bulkhead for sick hooks',
        imports: [],
      },
      load: {
        about: 'how many requests at once, and how many a second, a hook was learned to take',
        imports: ['outcomes'],
      },
      send: {
        about: 'one request over one connection: deadline, answer, failure',
        imports: ['outcomes', 'connect'],
      },
      login: {
        about: 'tokens to log in with: asked for, renewed, replaced when a server refuses them',
        imports: ['outcomes', 'send'],
      },
      '.': {
        about: "a destination's hooks with their headers and signatures; its share of the group's rate",
        imports: ['outcomes', 'connect', 'batch', 'lanes', 'load', 'send', 'login'],
      },
    },
  },
  gateway: {
    about: "Segment's tracking API over HTTP, and the outbox to Kafka",
    imports: ['address', 'async', 'audience', 'catalog', 'http', 'message'],
    rooms: {
      messages: {
        about: 'the messages of a request: read, limited, completed, written as bytes',
        imports: [],
      },
      outbox: {
        about: 'messages wait for Kafka, and their requests for the acknowledgement',
        imports: ['messages'],
      },
      calls: {
        about: 'a tracking call from its write key to its answer',
        imports: ['messages', 'outbox'],
      },
      http: {
        about: 'routes, bodies, browsers, addresses of clients, and the end of connections',
        imports: ['messages', 'calls'],
      },
    },
  },
  audience: {
    about: "changes, syncs and deletions → a unit's state and its store",
    imports: ['async', 'message'],
    packages: ['classic-level', 'change-case'],
    rooms: {
      records: {
        about: 'records of `memberships`, changes, syncs and deletions: read and written',
        imports: [],
      },
      '.': {
        about: 'the decision on a change, and what the folder needs from outside',
        imports: ['records'],
      },
      store: {
        about: "a unit's values on disk, a cache of `memberships`",
        imports: ['records', '.'],
      },
      syncs: {
        about: 'full syncs: parts that are gathered, then applied',
        imports: ['records', 'store', '.'],
      },
      unit: {
        about: "a unit's owner: takes records in their order, restores, purges, sends what is due",
        imports: ['records', '.', 'store', 'syncs'],
      },
    },
  },
  'audience-files': {
    about: 'the files that `sluice audience sync` and `change` read, and the records that they write',
    imports: ['audience', 'message'],
    packages: ['csv-parse'],
  },
  backfill: {
    about: 'first syncs, backfills, and the marks of destinations that lack values',
    imports: ['async', 'audience', 'audience-files', 'message', 'retry'],
  },
  growth: {
    about: 'takes an installation to more partitions',
    imports: ['audience', 'backfill', 'message', 'retry'],
    isPure: true,
  },
  replay: {
    about: 'decides which records are sent again and which process does it, and keeps the progress',
    imports: ['async', 'audience-files', 'message', 'retry', 'routing'],
  },
  admin: {
    about: 'the admin API: its routes, their document, tokens, sessions; the server of the console',
    imports: ['async', 'catalog', 'delivery-log', 'http', 'message'],
    packages: ['oauth4webapi'],
    rooms: {
      console: {
        about: 'what only browsers need: the files of the console, cookies, where requests come from',
        imports: [],
      },
      '.': { about: 'routes, their document, tokens, sessions', imports: ['console'] },
      provider: {
        about: 'people who sign in at an OpenID provider, and what they may do',
        imports: ['.'],
      },
    },
  },
  kafka: {
    about: 'the Kafka client: group member, fetches, watermark, commits, produces, logins',
    imports: ['async', 'http', 'message', 'secrets'],
    packages: ['aws-msk-iam-sasl-signer-js', 'snappy', 'lz4-napi'],
    doors: [
      'cluster/client.ts',
      'cluster/partwise-cluster.ts',
      'cluster/with-admin.ts',
      'group/consumer.ts',
      'login/kafka-settings.ts',
      'other-groups/group-lag.ts',
      'other-groups/group-state.ts',
      'pen/pen.ts',
      'produce/copy-writer.ts',
      'produce/lossy-producer.ts',
      'produce/producer.ts',
      'produce/record-sender.ts',
      'read/partition-reader.ts',
      'read/record-at.ts',
      'read/topic-tail.ts',
      'wire/errors.ts',
    ],
    rooms: {
      wire: {
        about: 'requests and answers as bytes, over connections of kafkajs; errors by their codes',
        imports: [],
      },
      login: {
        about: 'SASL, TLS and principals',
        imports: ['wire'],
      },
      cluster: {
        about: 'clients, brokers, coordinators; what a cluster says of its topics',
        imports: ['wire', 'login'],
      },
      fetch: {
        about: 'one fetch loop a broker; positions that survive another leader',
        imports: ['wire', 'cluster'],
      },
      partitions: {
        about: 'a partition that a member owns: records given out, watermark, commits',
        imports: ['wire', 'cluster', 'fetch'],
      },
      group: {
        about: 'the group member: joins, assignments, handovers',
        imports: ['wire', 'cluster', 'fetch', 'partitions'],
      },
      read: {
        about: 'readers outside of the group: whole logs, tails, one record',
        imports: ['wire', 'cluster', 'fetch'],
      },
      produce: {
        about: 'producers: what fails, is repeated, or may be lost',
        imports: ['wire', 'cluster'],
      },
      pen: {
        about: 'the right to write to a log, held by one process: transactions with a fixed id',
        imports: ['wire', 'cluster', 'produce'],
      },
      'other-groups': {
        about: 'commits and lag of a group without being its member',
        imports: ['wire', 'cluster'],
      },
    },
  },
  topics: {
    about: "Sluice's own topics: their list, settings, checks and growth, and the rights of each role",
    imports: ['kafka'],
  },
  'schema-registry': {
    about: 'values that begin with a schema id → plain JSON, by the schemas of a registry',
    imports: ['async', 'http', 'message'],
    packages: ['@kafkajs/confluent-schema-registry', 'ajv'],
  },
  waiting: {
    about: 'a queue in Kafka for each destination, for deliveries that wait for their turn',
    imports: ['kafka', 'message', 'async'],
  },
  lending: {
    about: "workers lend each other their parts of the destinations' rate limits",
    imports: [],
    isPure: true,
  },
  'catalog-log': {
    about: 'the catalog in a Kafka topic: signed records, sealed secrets, changes that are compared first',
    imports: ['async', 'catalog', 'delivery', 'kafka', 'message'],
    packages: ['classic-level'],
  },
  pipeline: {
    about: 'record → deliveries → attempts → settlement',
    imports: ['async', 'delivery', 'message', 'retry', 'routing', 'shape'],
  },
  'delivery-log': {
    about: 'the delivery log: writes it to the topic `attempts`, indexes it, and answers searches',
    imports: ['delivery', 'http', 'message', 'pipeline'],
    packages: ['@clickhouse/client'],
    rooms: {
      '.': {
        about: "the log's records and blocks, searches and their server",
        imports: [],
      },
      sqlite: {
        about: 'the index in files of SQLite',
        imports: ['.'],
      },
      clickhouse: {
        about: 'the index in ClickHouse',
        imports: ['.'],
      },
    },
  },
  notices: {
    about: 'notices to customers about their destinations: each worker reports, one decides',
    imports: ['delivery', 'message', 'pipeline'],
  },
  health: {
    about: 'what workers tell other processes about destinations: how much waits, and how much they take',
    imports: ['delivery', 'message', 'pipeline'],
  },
  recall: {
    about: 'calls messages back that wait on the retry topics after failed tries',
    imports: ['async', 'catalog', 'kafka', 'message', 'pipeline'],
  },
  tracing: {
    about: 'spans by OpenTelemetry, if an endpoint is set',
    imports: ['config', 'delivery', 'gateway', 'message', 'pipeline', 'retry', 'shape'],
    packages: ['@opentelemetry'],
  },
  telemetry: {
    about: 'the table of metrics, log lines, probes, version and commit of the build',
    imports: [
      'audience',
      'backfill',
      'delivery',
      'gateway',
      'http',
      'message',
      'notices',
      'pipeline',
      'replay',
      'retry',
    ],
    packages: ['prom-client'],
  },
  development: {
    about: 'a real Kafka for tests, the demo and `sluice up`',
    imports: [],
    packages: ['testcontainers'],
  },
  console: {
    about: 'the pages of the admin API in the browser; `scripts/build-console.ts` bundles them',
    imports: ['message'],
    packages: ['preact', '@preact', 'uplot', 'clients/admin'],
    rooms: {
      data: {
        about: 'the calls of the admin API, the session, the address, and how figures and times are written',
        imports: [],
      },
      parts: {
        about: 'what pages are made of: forms, dialogs, tables, charts, the frame around each page',
        imports: ['data'],
      },
      editor: {
        about: 'the form of a destination: its fields, the look at what differs, the trial of its rules',
        imports: ['data', 'parts'],
      },
      pages: {
        about: 'one file for each page, or for each view of a page',
        imports: ['data', 'parts', 'editor'],
      },
      '.': {
        about: '`main.tsx`: address → page',
        imports: ['data', 'parts', 'pages'],
      },
    },
  },
  workshop: {
    about: 'what `sluice up` keeps in `.sluice/`, and tells the other commands in its folder',
    imports: [],
  },
}

/** All folders of `src` by name. `.` stands for `src` itself. */
export const folders: Readonly<Record<string, Folder>> = {
  ...parts,
  roles: {
    about: 'connects the parts, starts them, and stops them in reverse order',
    imports: Object.keys(parts),
    rooms: {
      start: {
        about:
          'what each role does at its start: settings, Kafka, telemetry, the parts that stop in reverse order',
        imports: [],
      },
      catalog: {
        about: 'the catalog of a role: read from its file or its topic, followed, and kept on disk',
        imports: ['start'],
      },
      content: {
        about: 'what messages contain, read from Kafka for those who may see it',
        imports: ['start'],
      },
      preview: {
        about: 'what a filter and mappings do with messages, tried without a delivery',
        imports: [],
      },
      operations: {
        about: 'what commands and the admin API do: destinations, replays, searches',
        imports: ['start', 'catalog'],
      },
      bulk: {
        about: 'what is done to many destinations at once',
        imports: ['operations'],
      },
      member: {
        about: "the parts of a worker's member",
        imports: ['start', 'catalog', 'operations'],
      },
      console: {
        about: 'the sign-in to the console, and where sessions are kept',
        imports: ['start', 'catalog', 'operations'],
      },
      '.': {
        about: 'one file for each role, and the calls of the admin API',
        imports: ['start', 'catalog', 'content', 'preview', 'operations', 'bulk', 'member', 'console'],
      },
      processes: {
        about: 'several workers as one: forked members, one port, one end',
        imports: ['start', 'catalog', '.'],
      },
    },
  },
  commands: {
    about: 'the command line: the flags of each command, and beside them what it does',
    imports: ['roles', ...Object.keys(parts)],
    packages: ['commander', '@bomb.sh/tab'],
    rooms: {
      command: {
        about: 'what a command is made of: options, input, a role that runs until a signal',
        imports: [],
      },
      listen: {
        about: '`sluice listen`, and the client by which commands ask the admin API',
        imports: ['command'],
      },
      audience: {
        about: '`sluice audience`',
        imports: ['command'],
      },
      catalog: {
        about: '`sluice catalog`, `sluice apply`',
        imports: ['command'],
      },
      sources: {
        about: '`sluice sources`',
        imports: ['command'],
      },
      destinations: {
        about: '`sluice destinations`',
        imports: ['command'],
      },
      log: {
        about: '`sluice log`',
        imports: ['command'],
      },
      filter: {
        about: '`sluice filter`',
        imports: ['command'],
      },
      mappings: {
        about: '`sluice mappings`',
        imports: ['command', 'listen'],
      },
      replay: {
        about: '`sluice replay`',
        imports: ['command'],
      },
      topics: {
        about: '`sluice topics`',
        imports: ['command'],
      },
      '.': {
        about: 'the program with all commands, and those that need one file',
        imports: [
          'command',
          'listen',
          'audience',
          'catalog',
          'sources',
          'destinations',
          'log',
          'filter',
          'mappings',
          'replay',
          'topics',
        ],
      },
    },
  },
  '.': { about: '`main.ts`: argv → command → role → run → exit code', imports: ['commands'] },
}
