import { readConfig } from '../src/config/read.ts'
import { rightsMarkdown } from '../src/kafka/rights.ts'
import { topicLayout } from '../src/roles/settings.ts'

const introduction = `# Rights at the brokers

Generated from \`src/kafka/rights.ts\` and the [table of topics](topics.md) by \`npm run generate\`, for the default settings.
\`kafka.topicPrefix\`, \`kafka.groupId\` and \`retry.ladder\` change the names. Each growth changes names too: \`sluice.g2.memberships\` ([growing.md](growing.md)). With \`topics.check=off\` no role needs DESCRIBE_CONFIGS or ALTER_CONFIGS.

If the cluster reports what a principal may do (Apache Kafka does), each start compares these rights with the rights that the role needs. If rights are missing, the start ends with an error that names all of them:
operation, resource and principal. READ and WRITE of a topic include DESCRIBE, READ of a group includes DESCRIBE, and ALTER_CONFIGS includes DESCRIBE_CONFIGS. No role needs a right on the cluster, or a transactional id. No role that keeps
running needs the right to delete. A prefixed rule covers all topics at once (\`kafka-acls.sh\` writes DESCRIBE_CONFIGS as \`DescribeConfigs\`, and ALTER_CONFIGS as \`AlterConfigs\`):

\`\`\`
kafka-acls.sh --bootstrap-server HOST:PORT --add --allow-principal User:sluice-worker \\
  --operation Read --operation Write --operation DescribeConfigs --topic sluice. --resource-pattern-type prefixed
kafka-acls.sh --bootstrap-server HOST:PORT --add --allow-principal User:sluice-worker --operation Read --group sluice
\`\`\`

Retry topics of an earlier \`retry.ladder\` need the same rights as the other retry topics, until they are empty. If the group of a worker is named after a topic prefix other than the default, the worker looks once for commits of
the group \`sluice\`. If there may be any, give it DESCRIBE on the group \`sluice\`. A gateway that may also DESCRIBE the workers' group and all topics reports their lag (\`sluice_group_lag_records\`), even while no worker runs. A gateway without
these rights warns once, and alerts then rely on what workers report. Producers of your own need WRITE on \`events\`, \`audience-changes\` or \`deletions\`.
`

/** Returns the text of `docs/acls.md`. */
export function aclsMarkdown(): string {
  const read = readConfig({ env: {} })
  if (!read.ok) throw new Error(read.message)
  const { config } = read
  const scope = { layout: topicLayout(config), groupId: config.kafka.groupId, withSettings: true }
  return introduction + rightsMarkdown(scope)
}
