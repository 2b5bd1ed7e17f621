import { readConfig } from '../src/config/read.ts'
import { rightsMarkdown } from '../src/kafka/rights.ts'
import { topicLayout } from '../src/roles/settings.ts'

const introduction = `# Rights at the brokers

Generated from \`src/kafka/rights.ts\` and the [table of topics](topics.md) by \`npm run generate\`, for the default settings: \`kafka.topicPrefix\`, \`kafka.groupId\` and
\`retry.ladder\` change the names, and so does each growth: \`sluice.g2.memberships\` ([growing.md](growing.md)). With \`topics.check=off\` nobody needs DESCRIBE_CONFIGS or ALTER_CONFIGS.

Each start compares what its principal may do with what the role needs, where the cluster tells (Apache Kafka does), and ends with all that is missing: the
operation, the resource, the principal. READ and WRITE of a topic and READ of a group include DESCRIBE, and ALTER_CONFIGS includes DESCRIBE_CONFIGS. No role needs a right on the cluster, or a transactional id, and none that runs
for long needs to delete. A prefixed rule covers all topics at once:

\`\`\`
kafka-acls.sh --bootstrap-server HOST:PORT --add --allow-principal User:sluice-worker \\
  --operation READ --operation WRITE --operation DESCRIBE_CONFIGS --topic sluice. --resource-pattern-type prefixed
kafka-acls.sh --bootstrap-server HOST:PORT --add --allow-principal User:sluice-worker --operation READ --group sluice
\`\`\`

Retry topics of a ladder that was configured before need the same rights as the others until they are empty. A worker whose group follows a topic prefix other than the
default looks once for commits of the group \`sluice\`: DESCRIBE on it, if there may be any. A gateway that may also DESCRIBE the workers' group and all topics tells their lag
(\`sluice_group_lag_records\`), also while no worker runs; else it warns once, and alerts have the workers' word alone. Producers of your own need WRITE on \`events\`, \`audience-changes\` or \`deletions\`.
`

/** Returns the text of `docs/acls.md`. */
export function aclsMarkdown(): string {
  const read = readConfig({ env: {} })
  if (!read.ok) throw new Error(read.message)
  const { config } = read
  const scope = { layout: topicLayout(config), groupId: config.kafka.groupId, withSettings: true }
  return introduction + rightsMarkdown(scope)
}
